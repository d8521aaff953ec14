package notify

import (
	"context"
	"os/exec"
	"strings"
)

// Sender is the program that shows notices on the desktop.
const Sender = "notify-send"

// Desktop shows notices with notify-send; path is where that is.
func Desktop(path string, getenv func(string) string) Target {
	return Target{Name: "desktop", Send: func(ctx context.Context, n Notice) error {
		env := environ(getenv, append([]string{"XDG_RUNTIME_DIR"}, kept...)...) // where the bus is, if no variable says
		return run(ctx, append([]string{path}, desktopArgs(n)...), env, nil, commandTime)
	}}
}

// FindSender says where notify-send is.
func FindSender() (string, error) { return exec.LookPath(Sender) }

// markup is read in bodies, and so are the backslashes of C.
var markup = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `\`, "&#92;")

func desktopArgs(n Notice) []string {
	heading := map[string]string{Done: "Done", Failed: "Failed", Ask: "Waits for you"}[n.Event]
	urgency := "normal"
	body := n.Title
	switch {
	case n.Ask != nil:
		urgency = "critical"
		body += " (" + strings.ReplaceAll(n.Ask.Kind, "_", " ") + ")"
	case n.Error != "":
		body += " (" + n.Error + ")"
	}
	if n.Detail != "" {
		body += "\n" + line(n.Detail, titleRunes)
	}
	return []string{"--app-name=thole", "--urgency=" + urgency, "--", heading, markup.Replace(body)}
}
