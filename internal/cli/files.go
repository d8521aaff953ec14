package cli

import (
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/protocol/app"
)

// fileFlags are files that go with a message.
type fileFlags struct{ files, images []string }

func (f *fileFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.files, "file", nil, "send `FILE` with the message: it is laid into the agent's workspace; may be repeated")
	cmd.Flags().StringArrayVar(&f.images, "image", nil, "show the agent the image `FILE`; may be repeated")
}

// parts reads the files before anything is sent.
func (f *fileFlags) parts() ([]app.UserInput, error) {
	var out []app.UserInput
	for _, path := range f.images {
		abs, err := filepath.Abs(path)
		if err == nil {
			_, err = os.Stat(abs)
		}
		if err != nil {
			return nil, thole.Errorf(thole.CodeInvalid, "--image %s: %w", path, err)
		}
		out = append(out, app.UserInput{Type: "localImage", Path: abs})
	}
	for _, path := range f.files {
		in, err := filePart(path)
		if err != nil {
			return nil, thole.Errorf(thole.CodeInvalid, "--file %s: %w", path, err)
		}
		out = append(out, in)
	}
	return out, nil
}

func filePart(path string) (app.UserInput, error) {
	f, err := os.Open(path)
	if err != nil {
		return app.UserInput{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return app.UserInput{}, err
	}
	if st.IsDir() {
		return app.UserInput{}, thole.Errorf(thole.CodeInvalid, "it is a directory").WithHint("send an archive of it")
	}
	data, err := io.ReadAll(io.LimitReader(f, thole.MaxFile+1))
	if err != nil {
		return app.UserInput{}, err
	}
	if len(data) > thole.MaxFile {
		return app.UserInput{}, thole.Errorf(thole.CodeInvalid, "larger than %d MB", thole.MaxFile>>20)
	}
	in := thole.File(path, http.DetectContentType(data), data)
	return app.UserInput{Type: in.Type, Name: in.Name, URL: in.URL}, nil
}
