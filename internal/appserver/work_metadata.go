package appserver

import (
	"context"
	"encoding/json"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/protocol/app"
)

// maxGitText bounds a branch, a commit or an address in the metadata of a thread.
const maxGitText = 2 << 10

// threadMetadata keeps what a client says of the repository that a thread works in, for
// lists of threads. Nothing of it is used to find files.
func (s *Server) threadMetadata(ctx context.Context, c *conn, p *app.ThreadMetadataParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	change, err := gitChange(p)
	if err != nil {
		return answer{}, err
	}
	t, err := s.cfg.Threads.Update(ctx, c.who(), id, thread.Update{Git: change})
	if err != nil {
		return answer{}, err
	}
	return answer{result: app.ThreadResult{Thread: s.thread(t)}}, nil
}

// gitChange checks a whole request before anything of it counts.
func gitChange(p *app.ThreadMetadataParams) (func(event.Git) event.Git, error) {
	switch g := p.GitInfo; {
	case str(p.ProjectID) != "":
		return nil, thole.Errorf(thole.CodeNotFound, "project not found: %s", *p.ProjectID).WithHint("thole has no projects; a thread's directory says where it belongs")
	case p.DaybreakEnabled != nil && *p.DaybreakEnabled:
		return nil, thole.Errorf(thole.CodeUnsupported, "thread/metadata/update.daybreakEnabled is not supported: it is a programme of Codex's own service")
	case g == nil && p.ProjectID == nil && p.DaybreakEnabled == nil:
		return nil, thole.Errorf(thole.CodeInvalid, "thread metadata update must include at least one field")
	case g == nil:
		return nil, nil
	case g.Sha == nil && g.Branch == nil && g.OriginURL == nil:
		return nil, thole.Errorf(thole.CodeInvalid, "gitInfo must include at least one field")
	}
	var to event.Git
	fields := []struct {
		name string
		raw  json.RawMessage
		of   func(*event.Git) *string
	}{
		{"sha", p.GitInfo.Sha, func(g *event.Git) *string { return &g.Sha }},
		{"branch", p.GitInfo.Branch, func(g *event.Git) *string { return &g.Branch }},
		{"originUrl", p.GitInfo.OriginURL, func(g *event.Git) *string { return &g.Origin }},
	}
	for _, f := range fields {
		if f.raw == nil {
			continue
		}
		var text *string
		if err := strictjson.Unmarshal(f.raw, &text); err != nil {
			return nil, thole.Errorf(thole.CodeInvalid, "gitInfo.%s is not a string", f.name)
		}
		if text == nil {
			continue
		}
		switch said := strings.TrimSpace(*text); {
		case said == "":
			return nil, thole.Errorf(thole.CodeInvalid, "gitInfo.%s must not be empty", f.name)
		case len(said) > maxGitText:
			return nil, thole.Errorf(thole.CodeInvalid, "gitInfo.%s is longer than %d bytes", f.name, maxGitText)
		default:
			*f.of(&to) = said
		}
	}
	return func(now event.Git) event.Git {
		for _, f := range fields {
			if f.raw != nil {
				*f.of(&now) = *f.of(&to)
			}
		}
		return now
	}, nil
}

// gitInfo is nil where nothing is known.
func gitInfo(g event.Git) *app.GitInfo {
	if g == (event.Git{}) {
		return nil
	}
	return &app.GitInfo{Sha: ptr(g.Sha), Branch: ptr(g.Branch), OriginURL: ptr(g.Origin)}
}
