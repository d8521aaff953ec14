package relay

const (
	// Suite names the kind of the keys.
	Suite = "Noise_hybridIK_X25519+MLKEM768_AESGCM_SHA256"
	// Profile is the only security profile.
	Profile = "noise_hybrid_ik_v1"
	// MaxAuthorization bounds what a registry issues to a harness.
	MaxAuthorization = 4096

	// HeaderStreamID names the stream that a validation is about.
	HeaderStreamID = "x-codex-noise-stream-id"

	// CodeOffline is the error code of an environment without a connected executor.
	CodeOffline = "environment_offline"
	// CodeInUse is the error code of an environment that another executor serves.
	CodeInUse = "environment_in_use"
)

// Key is a public key.
type Key struct {
	Suite    string `json:"suite"`
	X25519   []byte `json:"x25519_public_key"`
	MLKEM768 []byte `json:"mlkem768_public_key"`
}

// RegisterRequest announces an executor: POST {base}/cloud/environment/{id}/register.
type RegisterRequest struct {
	SecurityProfile   string `json:"security_profile"`
	ExecutorPublicKey Key    `json:"executor_public_key"`
}

// Registration is what an executor gets. URL is of its socket at the rendezvous.
type Registration struct {
	EnvironmentID          string `json:"environment_id"`
	URL                    string `json:"url"`
	SecurityProfile        string `json:"security_profile"`
	ExecutorRegistrationID string `json:"executor_registration_id"`
}

// ConnectRequest asks for a way to an environment's executor: POST …/connect.
type ConnectRequest struct {
	HarnessPublicKey Key `json:"harness_public_key"`
}

// Bundle is what a harness gets, for one stream.
type Bundle struct {
	Registration
	ExecutorPublicKey       Key    `json:"executor_public_key"`
	HarnessKeyAuthorization string `json:"harness_key_authorization"`
}

// ValidateRequest asks whether a harness may use an executor: POST …/validate.
type ValidateRequest struct {
	ExecutorRegistrationID  string `json:"executor_registration_id"`
	HarnessPublicKey        Key    `json:"harness_public_key"`
	HarnessKeyAuthorization string `json:"harness_key_authorization"`
}

// ValidateResult answers it.
type ValidateResult struct {
	Valid bool `json:"valid"`
}

// Failure is the body of a refusal.
type Failure struct {
	Error FailureDetail `json:"error"`
}

// FailureDetail says what was refused.
type FailureDetail struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Credential is one line on the standard input of an executor that
// reads its credentials there. Later lines replace earlier ones.
type Credential struct {
	Version       int    `json:"version"`
	EnvironmentID string `json:"environment_id"`
	Token         string `json:"token"`
	ExpiresAt     int64  `json:"expires_at"` // unix seconds
}
