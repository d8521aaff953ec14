package identity

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
)

// Departments lists them with their members.
func (m *Machine) Departments(ctx context.Context, actor thole.Actor) ([]Department, error) {
	if _, err := m.may(ctx, actor, authz.ManageUsers, authz.Resource{}, platform); err != nil {
		return nil, err
	}
	return m.cfg.Store.Departments(ctx)
}

// department finds one that an actor may change; "" names no department.
func (m *Machine) department(ctx context.Context, actor thole.Actor, name string) (DepartmentID, error) {
	if _, err := m.may(ctx, actor, authz.ManageUsers, authz.Resource{}, platform); err != nil || name == "" {
		return "", err
	}
	p, err := m.place(ctx, authz.OnDepartment, name)
	return DepartmentID(p.ID), err
}

// AddDepartment adds one, below another unless parent is "".
func (m *Machine) AddDepartment(ctx context.Context, actor thole.Actor, name, parent, external string) (Department, error) {
	defer m.rights.forget()
	above, err := m.department(ctx, actor, parent)
	if err != nil {
		return Department{}, err
	}
	now := m.now()
	d := Department{ID: DepartmentID(m.cfg.NewID(now)), Parent: above, Created: now}
	if d.Name, err = checkText("department's name", name, 200); err == nil && d.Name == "" {
		err = thole.Errorf(thole.CodeInvalid, "a department has a name")
	}
	if err != nil {
		return d, err
	}
	if d.External, err = checkText("department's external id", external, 200); err != nil {
		return d, err
	}
	return d, m.cfg.Store.AddDepartment(ctx, d)
}

// MoveDepartment puts a department below another, or below none.
func (m *Machine) MoveDepartment(ctx context.Context, actor thole.Actor, name, parent string) error {
	defer m.rights.forget()
	id, err := m.department(ctx, actor, name)
	if err != nil {
		return err
	}
	to, err := m.department(ctx, actor, parent)
	if err != nil {
		return err
	}
	all, err := m.cfg.Store.Departments(ctx)
	if err != nil {
		return err
	}
	for _, d := range all {
		if d.ID == id && id != "" {
			moved, err := m.cfg.Store.MoveDepartmentIf(ctx, id, d.Parent, to)
			return orNow(err, moved, "department "+name)
		}
	}
	return thole.Errorf(thole.CodeNotFound, "no department %s", name)
}

// RemoveDepartment removes one that nothing refers to.
func (m *Machine) RemoveDepartment(ctx context.Context, actor thole.Actor, name string) error {
	defer m.rights.forget()
	id, err := m.department(ctx, actor, name)
	if err != nil {
		return err
	}
	found, err := m.cfg.Store.RemoveDepartment(ctx, id)
	if err == nil && !found {
		err = thole.Errorf(thole.CodeNotFound, "no department %s", name)
	}
	return err
}

// SetMember puts a user into a department or takes them out.
func (m *Machine) SetMember(ctx context.Context, actor thole.Actor, name, login string, member bool) error {
	defer m.rights.forget()
	id, err := m.department(ctx, actor, name)
	if err != nil {
		return err
	}
	u, err := m.manage(ctx, actor, login)
	if err != nil {
		return err
	}
	_, err = m.cfg.Store.SetMember(ctx, id, u.ID, member)
	return err
}
