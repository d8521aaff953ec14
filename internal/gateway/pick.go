package gateway

// maxPicked bounds a value that is kept; those that are wanted are short.
const maxPicked = 16 << 10

// picker reads a JSON object as it passes and keeps three of its members: type, model and
// usage, the last two also where they are members of message or response. Its memory does
// not depend on the length of the text. Text that is not JSON yields no or useless values,
// which their decoder rejects.
type picker struct {
	depth    int // open brackets
	text     bool
	escaped  bool
	naming   bool // the text is a member's name
	expects  bool // the next text of the innermost object is a name
	objects  [3]bool
	names    [3]member // of the current member at depths 1 and 2
	name     []byte
	grabbing int // the depth of the member whose value is kept, 0 for none
	slot     *[]byte

	kind, model, usage []byte // as written
}

type member uint8

const (
	other member = iota
	memberType
	memberModel
	memberUsage
	memberMessage
	memberResponse
)

func memberNamed(name []byte) member {
	switch string(name) {
	case "type":
		return memberType
	case "model":
		return memberModel
	case "usage":
		return memberUsage
	case "message":
		return memberMessage
	case "response":
		return memberResponse
	}
	return other
}

// reset prepares for the next object and keeps the memory of the last.
func (p *picker) reset() {
	*p = picker{name: p.name[:0], kind: p.kind[:0], model: p.model[:0], usage: p.usage[:0]}
}

func (p *picker) read(b []byte) {
	for i := 0; i < len(b); {
		if p.text {
			i += p.readText(b[i:])
			continue
		}
		c := b[i]
		i++
		switch c {
		case '"':
			p.text = true
			p.naming = p.expects && p.inObject()
			p.name = p.name[:0]
		case '{', '[':
			p.depth++
			if p.depth < len(p.objects) {
				p.objects[p.depth], p.names[p.depth] = c == '{', other
			}
			p.expects = true
		case '}', ']':
			p.endValue()
			if p.depth--; p.depth < 0 {
				p.depth = len(p.objects) // not JSON: look at nothing until the next reset
			}
		case ',':
			p.endValue()
			p.expects = true
		case ':':
			p.expects = false
			if p.grabbing == 0 {
				p.beginValue()
				continue
			}
		}
		p.keep(b[i-1 : i])
	}
}

// readText passes a part of a text and returns its length.
func (p *picker) readText(b []byte) int {
	n := 0
	for ; n < len(b) && (p.escaped || b[n] != '"'); n++ {
		p.escaped = !p.escaped && b[n] == '\\'
	}
	if p.naming && len(p.name) < 16 {
		p.name = append(p.name, b[:min(n, 16)]...)
	}
	if n < len(b) {
		p.text = false
		n++
		if p.naming {
			p.names[p.depth] = memberNamed(p.name)
		}
	}
	p.keep(b[:n])
	return n
}

func (p *picker) inObject() bool {
	return p.depth > 0 && p.depth < len(p.objects) && p.objects[p.depth]
}

// beginValue keeps what follows if it is wanted.
func (p *picker) beginValue() {
	if !p.inObject() {
		return
	}
	if p.depth == 2 && p.names[1] != memberMessage && p.names[1] != memberResponse {
		return
	}
	switch p.names[p.depth] {
	case memberType:
		if p.depth > 1 {
			return
		}
		p.slot = &p.kind
	case memberModel:
		p.slot = &p.model
	case memberUsage:
		p.slot = &p.usage
	default:
		return
	}
	p.grabbing = p.depth
	*p.slot = (*p.slot)[:0]
}

func (p *picker) endValue() {
	if p.grabbing == p.depth {
		p.grabbing = 0
	}
}

func (p *picker) keep(b []byte) {
	if p.grabbing == 0 {
		return
	}
	if len(*p.slot)+len(b) > maxPicked { // its decoder sees that the end is missing
		b = b[:maxPicked-len(*p.slot)]
	}
	*p.slot = append(*p.slot, b...)
}
