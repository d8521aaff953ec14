package app_test

import (
	"encoding/json"
	"fmt"

	"github.com/tholehq/thole/protocol/app"
)

// The whole contract is data: who sends what, and with which parameters.
func ExampleMethods() {
	for _, m := range app.Methods() {
		switch m.Name {
		case "turn/start", "turn/completed", "item/fileChange/requestApproval":
			fmt.Printf("%s %s %T\n", m.Direction, m.Name, m.Params)
		}
	}
	// Unordered output:
	// request turn/start app.TurnStartParams
	// notification turn/completed app.TurnNotification
	// serverRequest item/fileChange/requestApproval app.FileApproval
}

// A message to an agent is a list of inputs.
func ExampleUserInput() {
	text, err := json.Marshal(app.UserInput{Type: "text", Text: "tidy the tests"})
	fmt.Println(string(text), err)
	// Output: {"type":"text","text":"tidy the tests"} <nil>
}
