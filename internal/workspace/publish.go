package workspace

import (
	"context"
	"encoding/json"

	thole "github.com/tholehq/thole"
)

// ManifestRows keeps every manifest that was in use, under its version.
type ManifestRows interface {
	// Publish stores a manifest's text once and returns the text that is stored.
	Publish(ctx context.Context, app thole.AppID, version, body string) (stored string, err error)
	// Published returns a stored text; CodeNotFound without one.
	Published(ctx context.Context, app thole.AppID, version string) (string, error)
}

// Published is the source of an app's manifest that was given to us, in all the
// versions there were. Other apps have the built-in one.
type Published struct {
	rows    ManifestRows
	current Manifest
}

var _ ManifestSource = (*Published)(nil)

// Publish makes a manifest the current one of its app. Changed content under a
// version that was in use is refused: executors live by what it was.
func Publish(ctx context.Context, rows ManifestRows, m Manifest) (*Published, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	body, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	stored, err := rows.Publish(ctx, thole.AppID(m.AppID), m.RuntimeVersion, string(body))
	if err != nil {
		return nil, err
	}
	if stored != string(body) || m.RuntimeVersion == builtInVersion {
		return nil, thole.Errorf(thole.CodeConflict, "runtime version %q of app %s was another manifest", m.RuntimeVersion, m.AppID).
			WithHint("give the changed manifest a runtimeVersion of its own")
	}
	return &Published{rows, m}, nil
}

// Manifest implements ManifestSource.
func (p *Published) Manifest(ctx context.Context, app thole.AppID, version string) (Manifest, error) {
	switch {
	case string(app) != p.current.AppID, version == builtInVersion:
		return BuiltIn{}.Manifest(ctx, app, version)
	case version == "", version == p.current.RuntimeVersion:
		return p.current, nil
	}
	body, err := p.rows.Published(ctx, app, version)
	if err != nil {
		return Manifest{}, err
	}
	return ParseManifest([]byte(body))
}
