-- What ended is found by the time at which it did.
create index delivery_batches_closed on delivery_batches (closed_at, batch_id) where state = 'closed';
create index delivery_jobs_cancelled on delivery_jobs (updated_at, job_id) where status = 'cancelled';
