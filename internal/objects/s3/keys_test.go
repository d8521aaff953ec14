package s3_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects/s3"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// bare empties what the environment says about keys.
func bare(t *testing.T) {
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_SESSION_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_ROLE_ARN", "AWS_REGION", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
	} {
		t.Setenv(name, "")
	}
}

// Each source gives keys that the real server takes, named or found by itself.
func TestKeysOfEachSource(t *testing.T) {
	b := lab.S3(t)
	metadata := http.NewServeMux()
	metadata.HandleFunc("PUT /latest/api/token", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "session") })
	metadata.HandleFunc("GET /latest/meta-data/iam/security-credentials/{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "role") })
	metadata.HandleFunc("GET /latest/meta-data/iam/security-credentials/role", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-aws-ec2-metadata-token") != "session" {
			http.Error(w, "no token", http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, `{"Code":"Success","AccessKeyId":%q,"SecretAccessKey":%q,"Expiration":%q}`, b.AccessKey, b.SecretKey, time.Now().Add(time.Hour).Format(time.RFC3339))
	})
	metadata.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("Action") != "AssumeRoleWithWebIdentity" || r.FormValue("WebIdentityToken") != "proof" || r.FormValue("RoleArn") != "arn:aws:iam::1:role/thole" {
			http.Error(w, "who?", http.StatusForbidden)
			return
		}
		fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>`+
			`<AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><Expiration>%s</Expiration></Credentials>`+
			`</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, b.AccessKey, b.SecretKey, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	})
	service := httptest.NewServer(metadata)
	t.Cleanup(service.Close)

	for source, set := range map[s3.Source]func(*testing.T, *s3.Keys){
		s3.SourceStatic: func(_ *testing.T, k *s3.Keys) { k.Access, k.Secret = b.AccessKey, b.SecretKey },
		s3.SourceEnv: func(t *testing.T, _ *s3.Keys) {
			t.Setenv("AWS_ACCESS_KEY_ID", b.AccessKey)
			t.Setenv("AWS_SECRET_ACCESS_KEY", b.SecretKey)
		},
		s3.SourceWebIdentity: func(t *testing.T, k *s3.Keys) {
			token := filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(token, []byte("proof"), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", token)
			t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/thole")
			k.Endpoint = service.URL
		},
		s3.SourceIAM: func(_ *testing.T, k *s3.Keys) { k.Endpoint = service.URL },
	} {
		for _, named := range []s3.Source{source, s3.SourceAuto} {
			t.Run(string(source)+" as "+string(named), func(t *testing.T) {
				bare(t)
				cfg := config(b)
				cfg.Keys = s3.Keys{Source: named}
				set(t, &cfg.Keys)
				s, err := s3.Open(cfg)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				if err := s.Put(t.Context(), "k", strings.NewReader("x"), 1); err != nil {
					t.Error(err)
				}
				if l, err := s.SignGet(t.Context(), "k", time.Minute); err != nil || !strings.Contains(l.URL, "Credential="+b.AccessKey) {
					t.Errorf("%s, %v", l.URL, err)
				}
			})
		}
	}
}

// Without keys nothing is asked: an unsigned request would be another user's.
func TestNoRequestWithoutKeys(t *testing.T) {
	bare(t)
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	away := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(away.Close)
	for _, keys := range []s3.Keys{{Source: s3.SourceStatic}, {Source: s3.SourceEnv}, {Source: s3.SourceIAM, Endpoint: away.URL}, {Endpoint: away.URL}} {
		s, err := s3.Open(s3.Config{Endpoint: server.URL, Bucket: "some-bucket", Region: "us-east-1", Keys: keys})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Put(t.Context(), "k", strings.NewReader("x"), 1); thole.HintOf(err) == "" || asked > 0 {
			t.Errorf("%+v: %v after %d requests", keys, err, asked)
		}
		s.Close()
	}
}

// A server that knows better says where the bucket is, and is believed.
func TestRegionIsFollowed(t *testing.T) {
	bare(t)
	var scopes []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Query().Has("location"):
			fmt.Fprint(w, `<LocationConstraint xmlns="http://s3.amazonaws.com/doc/2006-03-01/">eu-old-1</LocationConstraint>`)
		case strings.Contains(r.Header.Get("Authorization"), "/eu-new-1/s3/"):
			scopes = append(scopes, "new")
		default:
			scopes = append(scopes, "old")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `<Error><Code>AuthorizationHeaderMalformed</Code><Message>moved</Message><Region>eu-new-1</Region></Error>`)
		}
	}))
	t.Cleanup(server.Close)
	s, err := s3.Open(s3.Config{Endpoint: server.URL, Bucket: "some-bucket", Keys: s3.Keys{Access: "a", Secret: "b"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for range 2 {
		if err := s.Put(t.Context(), "k", strings.NewReader("x"), 1); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(scopes, " "); got != "old new new" {
		t.Errorf("signed for %s", got)
	}
}
