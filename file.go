package thole

import (
	"encoding/base64"
	"mime"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// InputFile is the type of an input that is a file: its Name, and its content as a data URL.
const InputFile = "file"

const (
	// MaxFile bounds a file that comes with a message.
	MaxFile = 10 << 20
	// maxFileName bounds its name: shorter than what file systems take, so that a number fits in.
	maxFileName = 120
)

// File is the input of one file. The name is made safe.
func File(name, media string, data []byte) Input {
	return Input{Type: InputFile, Name: FileName(name), URL: "data:" + media + ";base64," + base64.StdEncoding.EncodeToString(data)}
}

// FileName makes of what a sender calls a file a name that is one plain, visible name in any
// directory: no path, no control or invisible characters, no dot in front, of bounded length.
func FileName(name string) string {
	name = strings.ToValidUTF8(name, "_")
	name = strings.TrimRight(name, `/\`)
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return '_'
		}
		return r
	}, name)
	name = strings.TrimRight(strings.TrimLeft(name, ". "), ". ")
	if len(name) > maxFileName {
		ext := filepath.Ext(name)
		if len(ext) > 16 {
			ext = ""
		}
		cut := maxFileName - len(ext)
		for cut > 0 && !utf8.RuneStart(name[cut]) {
			cut--
		}
		name = strings.TrimRight(name[:cut], ". ") + ext
	}
	if name == "" {
		return "file"
	}
	return name
}

// Content is what is in an input that is a file, and its media type.
func (in Input) Content() (media string, data []byte, err error) {
	no := func(format string, args ...any) (string, []byte, error) {
		return "", nil, Errorf(CodeInvalid, "file %s: "+format, append([]any{in.Name}, args...)...)
	}
	rest, ok := strings.CutPrefix(in.URL, "data:")
	head, body, based := strings.Cut(rest, ";base64,")
	if !ok || !based {
		return no("its url is not a data: URL in base64")
	}
	if media, _, err = mime.ParseMediaType(head); err != nil {
		media = "application/octet-stream"
	}
	if base64.StdEncoding.DecodedLen(len(body)) > MaxFile+2 {
		return no("larger than %d MB", MaxFile>>20)
	}
	if data, err = base64.StdEncoding.DecodeString(body); err != nil {
		return no("its data URL is not base64: %w", err)
	}
	if len(data) > MaxFile {
		return no("larger than %d MB", MaxFile>>20)
	}
	return media, data, nil
}
