-- What turns sent over the network is read from their events, one per run.
create index thread_events_network on thread_events (thread_id, seq) where kind = 'network.updated';
