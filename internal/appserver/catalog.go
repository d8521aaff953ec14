package appserver

import (
	"cmp"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	clis "github.com/tholehq/thole/internal/provider/table"
	"github.com/tholehq/thole/internal/version"
	"github.com/tholehq/thole/protocol/app"
)

// catalog maps between the models of several providers and the one list that the
// contract has. Codex's models keep their names; those of others are
// provider/model, and provider/default leaves the choice to the provider.
type catalog struct{ cfg *Config }

const defaultModel = "default"

// provider runs threads that name none: the configured one, else the contract's own,
// else the first that is there.
func (c *catalog) provider() string {
	if c.cfg.DefaultProvider != "" {
		return c.cfg.DefaultProvider
	}
	first := ""
	for _, info := range c.cfg.Providers() {
		if !info.Available {
			continue
		}
		if info.Name == clis.Contract {
			return clis.Contract
		}
		first = cmp.Or(first, info.Name)
	}
	return first
}

// pick finds the provider and its model for what a request says. Empty results
// leave the thread's as they are.
func (c *catalog) pick(model, providerName, now string) (string, string, error) {
	infos := c.cfg.Providers()
	if providerName != "" && !known(infos, providerName) {
		// Clients of codex name its own model providers ("openai", "ollama", …).
		providerName = ""
	}
	if model == "" {
		return providerName, "", nil
	}
	if name, rest, ok := strings.Cut(model, "/"); ok && known(infos, name) {
		if providerName != "" && providerName != name {
			return "", "", thole.Errorf(thole.CodeInvalid, "model %s does not belong to provider %s", model, providerName)
		}
		if rest == defaultModel {
			rest = ""
		}
		return name, rest, nil
	}
	if providerName != "" {
		return providerName, model, nil
	}
	for _, info := range infos {
		for _, m := range info.Models {
			if m.ID == model {
				return info.Name, model, nil
			}
		}
	}
	if now != "" && now != clis.Contract || now == "" && c.provider() != clis.Contract {
		if !known(infos, clis.Contract) {
			// A Codex client's own default model means nothing to the others.
			return "", "", nil
		}
		return clis.Contract, model, nil
	}
	return "", model, nil
}

func known(infos []provider.Info, name string) bool {
	for _, i := range infos {
		if i.Name == name {
			return true
		}
	}
	return false
}

// wireModel is the model of a thread as the contract names it.
func (c *catalog) wireModel(providerName, model string) string {
	if model == "" {
		for _, info := range c.cfg.Providers() {
			if info.Name != providerName {
				continue
			}
			for _, m := range info.Models {
				if m.Default {
					model = m.ID
				}
			}
		}
	}
	if model == "" {
		model = defaultModel
		if providerName == clis.Contract {
			return clis.Contract + "/" + defaultModel
		}
	}
	if providerName == clis.Contract || providerName == "" {
		return model
	}
	return providerName + "/" + model
}

// onlyEffort stands for the choice that a model without efforts leaves: clients want one.
const onlyEffort = "medium"

// effort is what a client's word for the effort means with the model that it names, or that
// the thread has: of a model that has none, the only one listed is the agent's own.
func (c *catalog) effort(word string, set, now event.Settings) string {
	if word != onlyEffort {
		return word
	}
	name, model := cmp.Or(set.Provider, now.Provider, c.provider()), set.Model
	switch {
	case model == event.OwnChoice:
		model = ""
	case model == "" && (set.Provider == "" || set.Provider == now.Provider):
		model = now.Model
	}
	for _, info := range c.cfg.Providers() {
		if info.Name != name {
			continue
		}
		i := slices.IndexFunc(info.Models, func(m provider.Model) bool { return m.ID == model || model == "" && m.Default })
		switch {
		case i >= 0 && len(info.Models[i].Efforts) > 0, i < 0 && model != "":
			return word
		case now.Effort != "":
			return event.OwnChoice
		}
		return ""
	}
	return word
}

// version is that of an agent's CLI; of the protocol where it is not known.
func (c *catalog) version(providerName string) string {
	for _, info := range c.cfg.Providers() {
		if info.Name == providerName && info.Version != "" {
			return info.Version
		}
	}
	return version.Codex
}

// list is every model of every provider that is there. The default is the user's
// choice, else the default provider's own.
func (c *catalog) list(chosen event.Settings) []app.Model {
	models := []app.Model{}
	chosenID := ""
	if chosen.Provider != "" {
		chosenID = c.wireModel(chosen.Provider, chosen.Model)
	}
	for _, info := range c.cfg.Providers() {
		if !info.Available {
			continue
		}
		offered := info.Models
		if !slices.ContainsFunc(offered, func(m provider.Model) bool { return m.Default }) {
			offered = append([]provider.Model{{ID: defaultModel, Title: info.Title, Default: true}}, offered...)
		}
		for _, m := range offered {
			id := info.Name + "/" + m.ID
			if info.Name == clis.Contract && m.ID != defaultModel {
				id = m.ID
			}
			isDefault := id == chosenID
			if chosenID == "" {
				isDefault = info.Name == c.provider() && m.Default
			}
			models = append(models, wireModel(info, m, id, isDefault))
		}
	}
	return oneDefault(models)
}

// unlisted is a model that a thread has and its provider does not list.
func (c *catalog) unlisted(providerName, model string) (app.Model, bool) {
	for _, info := range c.cfg.Providers() {
		if info.Name != providerName || model == "" || slices.ContainsFunc(info.Models, func(m provider.Model) bool { return m.ID == model }) {
			continue
		}
		return wireModel(info, provider.Model{ID: model}, c.wireModel(providerName, model), false), true
	}
	return app.Model{}, false
}

func wireModel(info provider.Info, m provider.Model, id string, isDefault bool) app.Model {
	out := app.Model{
		ID: id, Model: id, DisplayName: cmp.Or(m.Title, m.ID), Description: "Runs in " + cmp.Or(info.Title, info.Name),
		SupportedReasoningEfforts: []app.EffortOption{}, InputModalities: modalities(m.Inputs),
		AdditionalSpeedTiers: []string{}, ServiceTiers: []string{}, IsDefault: isDefault,
	}
	if info.Name == clis.Contract {
		out.DisplayName = cmp.Or(m.Title, m.ID)
	} else {
		out.DisplayName = cmp.Or(info.Title, info.Name) + ": " + out.DisplayName
	}
	for _, e := range m.Efforts {
		out.SupportedReasoningEfforts = append(out.SupportedReasoningEfforts, app.EffortOption{ReasoningEffort: e, Description: e})
	}
	if len(m.Efforts) == 0 {
		out.SupportedReasoningEfforts = []app.EffortOption{{ReasoningEffort: onlyEffort, Description: "the provider's own"}}
	}
	out.DefaultReasoningEffort = cmp.Or(m.Effort, out.SupportedReasoningEfforts[len(out.SupportedReasoningEfforts)/2].ReasoningEffort)
	return out
}

// modalities are the kinds of input of a model that threads carry: all of them where a
// provider does not say which.
func modalities(inputs []string) []string {
	carried := []string{"text", "image"}
	if len(inputs) == 0 {
		return carried
	}
	return slices.DeleteFunc(carried, func(kind string) bool { return !slices.Contains(inputs, kind) })
}

// oneDefault sees to it that exactly one model is the default: clients start with
// it.
func oneDefault(models []app.Model) []app.Model {
	seen := false
	for i := range models {
		models[i].IsDefault = models[i].IsDefault && !seen
		seen = seen || models[i].IsDefault
	}
	if !seen && len(models) > 0 {
		models[0].IsDefault = true
	}
	return models
}
