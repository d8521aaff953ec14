package wire

import "github.com/tholehq/thole/internal/sandbox/repository"

// Box is how a driver lets executord make the box of its agents.
type Box struct {
	// Bwrap is bubblewrap, Args its arguments but for the workspace, the filter of
	// system calls and the program, Init the program of thole, each as executord sees
	// them.
	Bwrap string   `json:"bwrap"`
	Args  []string `json:"args"`
	Init  string   `json:"init"`
	// CA is a file inside with every certificate that programs trust, "" for the system's.
	CA string `json:"ca,omitempty"`
	// Place is the directory of a person in which agents work, and the repository that it is
	// in; nil: they work in the workspace.
	Place *repository.Place `json:"place,omitempty"`
	// Egress is what its proxy lets through.
	Egress Egress `json:"egress"`
	// Doors is how many descriptors, from DoorsAt on, take who writes "0" to them into
	// the control groups of the box.
	Doors int `json:"doors,omitempty"`
	// Processes, threads counted, and Memory, in bytes, are what executord holds the box
	// to because no control group does; 0 is no limit.
	Processes int   `json:"processes,omitempty"`
	Memory    int64 `json:"memory,omitempty"`
}

// DoorsAt is the first descriptor after executord's socket.
const DoorsAt = 4

// Egress is what agents may reach over the network, as in the configuration.
type Egress struct {
	Policy  string   `json:"policy"`
	Names   []string `json:"names,omitempty"`
	Private []string `json:"private,omitempty"`
}
