package store

import (
	"context"
	"database/sql"
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/identity"
	"github.com/tholehq/thole/internal/sqldb"
)

// tree is all departments with their members.
type tree []identity.Department

func readTree(tx *sqldb.Tx) (tree, error) {
	all, err := sqldb.All(tx, func(rows *sql.Rows) (d identity.Department, err error) {
		var created int64
		err = rows.Scan(&d.ID, &d.Parent, &d.Name, &d.External, &created)
		d.Created = thole.FromMillis(created)
		return d, err
	}, `select id, parent_id, name, external_id, created_at from departments order by name, id`)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	type member struct {
		of   identity.DepartmentID
		user thole.UserID
	}
	members, err := sqldb.All(tx, func(rows *sql.Rows) (m member, err error) { return m, rows.Scan(&m.of, &m.user) },
		`select department_id, user_id from department_members order by user_id`)
	for _, m := range members {
		for i := range all {
			if all[i].ID == m.of {
				all[i].Members = append(all[i].Members, m.user)
			}
		}
	}
	return all, err
}

// above are the departments of a user and those above them.
func (t tree) above(user thole.UserID) (out []identity.DepartmentID) {
	add := func(d identity.Department) bool {
		if slices.Contains(out, d.ID) {
			return false
		}
		out = append(out, d.ID)
		return true
	}
	for _, d := range t {
		if slices.Contains(d.Members, user) {
			add(d)
		}
	}
	for more := true; more; {
		more = false
		for _, d := range t {
			if slices.ContainsFunc(t, func(child identity.Department) bool { return child.Parent == d.ID && slices.Contains(out, child.ID) }) {
				more = add(d) || more
			}
		}
	}
	return out
}

// below are the users of a department and of those below it.
func (t tree) below(id identity.DepartmentID) (users []thole.UserID) {
	in := []identity.DepartmentID{id}
	for i := 0; i < len(in); i++ { // it grows
		for _, d := range t {
			if d.ID == in[i] {
				users = append(users, d.Members...)
			}
			if d.Parent == in[i] && !slices.Contains(in, d.ID) {
				in = append(in, d.ID)
			}
		}
	}
	slices.Sort(users)
	return slices.Compact(users)
}

// Departments implements identity.Store.
func (s *Identities) Departments(ctx context.Context) (all []identity.Department, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		all, err = readTree(tx)
		return err
	})
	return all, err
}

// lockTree orders changes of the tree, so that two of them make no circle.
func lockTree(tx *sqldb.Tx) (tree, error) {
	if _, err := sqldb.All(tx, scanID[string], `select id from departments order by id`+tx.ForUpdate()); err != nil {
		return nil, err
	}
	return readTree(tx)
}

func departmentEntry(action string, id identity.DepartmentID, facts any) audit.Entry {
	return audit.Entry{Action: action, Kind: "department", ID: string(id), After: audit.Facts(facts)}
}

// AddDepartment implements identity.Store.
func (s *Identities) AddDepartment(ctx context.Context, d identity.Department) error {
	return s.change(ctx, "identity.add_department", func(tx *sqldb.Tx) error {
		t, err := lockTree(tx)
		if err != nil {
			return err
		}
		if d.Parent != "" && !slices.ContainsFunc(t, func(o identity.Department) bool { return o.ID == d.Parent }) {
			return thole.Errorf(thole.CodeNotFound, "no department %s", d.Parent)
		}
		fresh, err := tx.ExecOne(`insert into departments (id, parent_id, name, external_id, created_at) values ($1, $2, $3, $4, $5) on conflict do nothing`, d.ID, d.Parent, d.Name, d.External, instant(d.Created))
		if err == nil && !fresh {
			err = thole.Errorf(thole.CodeConflict, "there is a department %s already", d.Name)
		}
		if err != nil {
			return err
		}
		_, err = link(tx, departmentEntry("department.add", d.ID, map[string]any{"name": d.Name, "parent": d.Parent}))
		return err
	})
}

// MoveDepartmentIf implements identity.Store.
func (s *Identities) MoveDepartmentIf(ctx context.Context, id, from, to identity.DepartmentID) (moved bool, err error) {
	err = s.change(ctx, "identity.move_department", func(tx *sqldb.Tx) error {
		t, err := lockTree(tx)
		if err != nil {
			return err
		}
		parents := map[identity.DepartmentID]identity.DepartmentID{}
		for _, d := range t {
			parents[d.ID] = d.Parent
		}
		if _, there := parents[to]; to != "" && !there {
			return thole.Errorf(thole.CodeNotFound, "no department %s", to)
		}
		for at := to; at != ""; at = parents[at] {
			if at == id {
				return thole.Errorf(thole.CodeConflict, "a department cannot be below itself")
			}
		}
		if moved, err = tx.ExecOne(`update departments set parent_id = $3 where id = $1 and parent_id = $2`, id, from, to); err != nil || !moved {
			return err
		}
		_, err = link(tx, departmentEntry("department.move", id, map[string]any{"from": from, "parent": to}))
		return err
	})
	return moved && err == nil, err
}

// RemoveDepartment implements identity.Store.
func (s *Identities) RemoveDepartment(ctx context.Context, id identity.DepartmentID) (found bool, err error) {
	err = s.change(ctx, "identity.remove_department", func(tx *sqldb.Tx) error {
		if _, err := lockTree(tx); err != nil {
			return err
		}
		used, err := sqldb.All(tx, scanID[string], `select user_id from department_members where department_id = $1 union all select id from departments where parent_id = $1
			union all select id from grants where subject_kind = 'department' and subject_id = $1 or scope_kind = 'department' and scope_id = $1`, id)
		if err == nil && len(used) > 0 {
			err = thole.Errorf(thole.CodeConflict, "the department has members, grants or departments below it").WithHint("remove those first")
		}
		if err != nil {
			return err
		}
		if found, err = tx.ExecOne(`delete from departments where id = $1`, id); err != nil || !found {
			return err
		}
		_, err = link(tx, departmentEntry("department.remove", id, nil))
		return err
	})
	return found && err == nil, err
}

// SetMember implements identity.Store. Whom a person puts into a department stays there,
// whatever a provider's groups say.
func (s *Identities) SetMember(ctx context.Context, id identity.DepartmentID, user thole.UserID, member bool) (changed bool, err error) {
	err = s.change(ctx, "identity.set_member", func(tx *sqldb.Tx) error {
		if member {
			if _, err := tx.Exec(`update department_members set source = '' where department_id = $1 and user_id = $2`, id, user); err != nil {
				return err
			}
		}
		changed, err = setMember(tx, id, user, "", member)
		return err
	})
	return changed && err == nil, err
}

func setMember(tx *sqldb.Tx, id identity.DepartmentID, user thole.UserID, source string, member bool) (changed bool, err error) {
	action := "department.join"
	if member {
		changed, err = tx.ExecOne(`insert into department_members (department_id, user_id, source) select d.id, u.id, $3 from departments d, users u where d.id = $1 and u.id = $2 on conflict do nothing`, id, user, source)
	} else {
		action = "department.leave"
		changed, err = tx.ExecOne(`delete from department_members where department_id = $1 and user_id = $2`, id, user)
	}
	if err != nil || !changed {
		return false, err
	}
	facts := map[string]any{"user": user}
	if source != "" {
		facts["source"] = source
	}
	e := departmentEntry(action, id, facts)
	e.Owner = user
	_, err = link(tx, e)
	return true, err
}

// setDepartments makes the departments that a provider's groups put a user into exactly these.
func setDepartments(tx *sqldb.Tx, user thole.UserID, source string, in []identity.DepartmentID) error {
	have, err := sqldb.All(tx, scanID[identity.DepartmentID], `select department_id from department_members where user_id = $1 and source = $2 order by department_id`, user, source)
	if err != nil {
		return err
	}
	for _, id := range have {
		if slices.Contains(in, id) {
			continue
		}
		if _, err := setMember(tx, id, user, source, false); err != nil {
			return err
		}
	}
	for _, id := range in {
		if _, err := setMember(tx, id, user, source, true); err != nil {
			return err
		}
	}
	return nil
}
