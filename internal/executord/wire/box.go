package wire

// Box is how a driver lets executord make the box of its agents.
type Box struct {
	// Bwrap is bubblewrap, Args its arguments but for the workspace, the filter of
	// system calls and the program, Init the program of thole, each as executord sees
	// them.
	Bwrap string   `json:"bwrap"`
	Args  []string `json:"args"`
	Init  string   `json:"init"`
}
