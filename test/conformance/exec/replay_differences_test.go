//go:build linux

package exec_test

import (
	"github.com/tholehq/thole/protocol/exec"
)

// difference is an answer of thole's that differs on purpose.
type difference struct {
	code int // expected error code; 0 means that the answer is not compared
	why  string
}

// differences lists every one, by transcript and request id. Not listed, because
// never compared: texts of errors, session ids, times, the sizes of directories,
// the executor's description, how output is cut into chunks, the payload of pings,
// and the order of http response headers with different names, which means nothing
// in HTTP and which Go's client does not keep.
var differences = map[string]map[string]difference{
	"02_process_pipes": {
		"5": {0, "two streams written within a microsecond: ours come in the order written"},
		"6": {0, "as above"},
		"7": {0, "as above"},
	},
	"13_disconnect_resume": {
		"2": {0, "the recorder slept here; how much was printed meanwhile is a matter of time"},
	},
	"15_read_longpoll_concurrent": {
		"7": {0, "whether the exit is seen by the same long poll as the output is a race"},
	},
	"15_read_longpoll_inline": {
		"7": {0, "as above"},
	},
	"10_fs_0166_additions": {
		"22": {exec.CodeMethodNotFound, "capability discovery is left out and not advertised"},
		"23": {exec.CodeMethodNotFound, "capability discovery is left out and not advertised"},
		"24": {exec.CodeMethodNotFound, "capability discovery is left out and not advertised"},
		"25": {exec.CodeMethodNotFound, "capability discovery is left out and not advertised"},
	},
	"20_sandbox": {
		"21": {0, "nothing is installed for this profile, and the sandbox's type says so"},
		"22": {0, "as above"},
		"23": {0, "as above"},
		"27": {exec.CodeInvalidParams, "a managed network that does not exist is refused at once, not by a crash of the helper"},
	},
	"24_env_policy_arg0_snapshot": {
		"23": {exec.CodeInvalidParams, "the managed network proxy is left out and not advertised"},
	},
}

// rawFrames are frames that a transcript could only show decoded.
var rawFrames = map[string]map[int]string{
	"06_malformed": {
		2:  `"str"`,
		9:  `{"id":1,"id":2,"method":"initialize","params":{"clientName":"a"}}`,
		12: `{"jsonrpc":"2.0","id":9223372036854775807,"method":"initialize","params":{"clientName":5}}`,
		13: `{"jsonrpc":"2.0","id":9223372036854775808,"method":"initialize","params":{"clientName":"x"}}`,
	},
}
