package budget

import (
	"math"
	"strconv"
	"strings"

	thole "github.com/tholehq/thole"
)

// Money writes millionths of a dollar: cents, or as many digits as a small sum needs.
func Money(micros int64) string {
	digits := 2
	for unit := int64(10_000); digits < 6 && micros%unit != 0 && micros < 1_000_000; unit /= 10 {
		digits++
	}
	return "$" + strconv.FormatFloat(float64(micros)/1e6, 'f', digits, 64)
}

// Count writes a number of tokens.
func Count(n int64) string {
	switch {
	case n >= 1_000_000 && n%10_000 == 0:
		return strconv.FormatFloat(float64(n)/1e6, 'f', -1, 64) + "M tokens"
	case n >= 1000 && n%100 == 0:
		return strconv.FormatFloat(float64(n)/1e3, 'f', -1, 64) + "k tokens"
	}
	return strconv.FormatInt(n, 10) + " tokens"
}

// ParseLimit reads an amount as a person writes it: "$20", "$0.50", "2M tokens",
// "500k tokens", "1000000 tokens".
func ParseLimit(text string) (a Amount, err error) {
	bad := thole.Errorf(thole.CodeInvalid, "%q is not a limit", text).WithHint("write '$20' or '2M tokens'")
	if rest, money := strings.CutPrefix(text, "$"); money {
		a.Micros, err = scaled(rest, 1_000_000)
	} else {
		number, unit, _ := strings.Cut(strings.TrimSpace(text), " ")
		if unit = strings.TrimSpace(unit); unit != "tokens" && unit != "token" {
			return Amount{}, bad
		}
		scale := 1.0
		for suffix, by := range map[string]float64{"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9} {
			if rest, ok := strings.CutSuffix(number, suffix); ok {
				number, scale = rest, by
			}
		}
		a.Tokens, err = scaled(number, scale)
	}
	if err != nil || a.Micros < 0 || a.Tokens < 0 || a.Micros+a.Tokens == 0 {
		return Amount{}, bad
	}
	return a, nil
}

func scaled(text string, scale float64) (int64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || strings.ContainsAny(text, "eExXpP_") || math.IsNaN(f) || f < 0 || f*scale > MaxLimit || f*scale != math.Trunc(f*scale) && math.Abs(f*scale-math.Round(f*scale)) > 1e-6 {
		return 0, strconv.ErrSyntax
	}
	return int64(math.Round(f * scale)), nil
}
