package wire

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
	// Egress is what its proxy lets through.
	Egress Egress `json:"egress"`
}

// Egress is what agents may reach over the network, as in the configuration.
type Egress struct {
	Policy  string   `json:"policy"`
	Names   []string `json:"names,omitempty"`
	Private []string `json:"private,omitempty"`
}
