-- A batch that no channel reaches no longer stands before later ones of its thread:
-- lanes that rest because of one are looked at by the next sweep.
update delivery_lanes set due_at = 1, version = version + 1
where due_at = 0 and ticket = 0
  and exists (select 1 from delivery_batches b where b.lane_id = delivery_lanes.lane_id and b.state <> 'closed' and b.held_for = 'no_channel')
  and exists (select 1 from delivery_batches b where b.lane_id = delivery_lanes.lane_id and b.state = 'queued');
