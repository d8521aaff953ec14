package s3

import (
	"cmp"
	"net/http"
	"os"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
	thole "github.com/tholehq/thole"
)

// Source says where the keys come from.
type Source string

const (
	SourceAuto        Source = "auto"         // the first of the others that is set up
	SourceStatic      Source = "static"       // Access and Secret
	SourceEnv         Source = "env"          // AWS_ACCESS_KEY_ID and its like
	SourceWebIdentity Source = "web_identity" // a token file, changed for keys at a token service (STS)
	SourceIAM         Source = "iam"          // the role of the machine, task or pod
)

// Keys are credentials, or where to get them. Those that run out are fetched
// again in time.
type Keys struct {
	Source         Source
	Access, Secret string
	// Endpoint is the URL of the token or metadata service, Amazon's without one.
	Endpoint string
}

// chain picks one source for good: an error of the one that is meant must not
// end in another, nor in a request without a signature.
func (k Keys) chain(region string) (*credentials.Credentials, error) {
	source := cmp.Or(k.Source, SourceAuto)
	if source == SourceAuto {
		switch {
		case k.Access != "" || k.Secret != "":
			source = SourceStatic
		case os.Getenv("AWS_ACCESS_KEY_ID") != "":
			source = SourceEnv
		case os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE") != "":
			source = SourceWebIdentity
		default:
			source = SourceIAM
		}
	}
	var p credentials.Provider
	switch source {
	case SourceStatic:
		p = &credentials.Static{Value: credentials.Value{AccessKeyID: k.Access, SecretAccessKey: k.Secret, SignerType: credentials.SignatureV4}}
	case SourceEnv:
		p = &credentials.EnvAWS{}
	case SourceWebIdentity, SourceIAM:
		if source == SourceWebIdentity && os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE") == "" {
			return nil, thole.Errorf(thole.CodeInvalid, "objects.credentials: AWS_WEB_IDENTITY_TOKEN_FILE is not set").WithHint("set it and AWS_ROLE_ARN, or choose another source")
		}
		// The library looks at the variables of web identity, of a task and of a
		// pod before it asks the machine.
		p = &credentials.IAM{Endpoint: k.Endpoint, Region: region, Client: &http.Client{Timeout: 5 * time.Second}}
	default:
		return nil, thole.Errorf(thole.CodeInvalid, "objects.credentials: unknown source %q; use auto, static, env, web_identity or iam", source)
	}
	return credentials.New(signing{p, source}), nil
}

// signing refuses keys that would leave requests unsigned.
type signing struct {
	credentials.Provider
	source Source
}

func (s signing) Retrieve() (credentials.Value, error) { return s.RetrieveWithCredContext(nil) }

func (s signing) RetrieveWithCredContext(cc *credentials.CredContext) (credentials.Value, error) {
	v, err := s.Provider.RetrieveWithCredContext(cc)
	if err == nil && (v.AccessKeyID == "" || v.SecretAccessKey == "") {
		return credentials.Value{}, thole.Errorf(thole.CodeInvalid, "no keys for the object store from %s", s.source).WithHint("set objects.access_key and objects.secret_key_file, or objects.credentials")
	}
	if err != nil {
		return credentials.Value{}, thole.Errorf(thole.CodeUnavailable, "keys for the object store from %s: %w", s.source, err).WithHint("check objects.credentials")
	}
	return v, nil
}
