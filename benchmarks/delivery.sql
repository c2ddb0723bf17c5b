-- The whole family delivery: each table has what checkers/anomalies/records.py stores of one anomaly from the same Parquet.
create or replace view sends as from read_parquet('{run}/history/sends/*.parquet');
create or replace view reads as from read_parquet('{run}/history/reads/*.parquet');
create or replace view complete as
    select topic, partition, log_start from read_parquet('{run}/history/log_ends/*.parquet') where complete;

-- Damaged bytes prove a record only at the offset at which it was acknowledged.
create or replace view proven as
    select reads.* from reads
    where intact or exists (
        from sends
        where outcome = 'ok' and sends.record_id = reads.record_id and sends.topic = reads.topic
            and sends.partition = reads.partition and sends."offset" = reads."offset"
    );

create or replace temp table lost as
    select topic, partition, "offset", record_id, worker, sequence, invoked_ns, completed_ns
    from sends join complete using (topic, partition)
    where outcome = 'ok' and ("offset" is null or "offset" >= log_start) and not exists (
        from proven final
        where phase = 'final' and final.record_id = sends.record_id
            and final.topic = sends.topic and final.partition = sends.partition
    );

create or replace temp table vanished as
    select live.topic, live.partition, live."offset", live.record_id, min(read_ns) as read_ns
    from proven live join complete using (topic, partition)
    where phase = 'live' and record_id is not null and "offset" >= log_start and not exists (
        from proven final
        where final.phase = 'final' and final.record_id = live.record_id and final."offset" = live."offset"
            and final.topic = live.topic and final.partition = live.partition
    )
    group by all;

create or replace temp table failed_but_present as
    select topic, partition, record_id, error, min(reads."offset") as read_offset
    from sends join reads using (topic, partition, record_id)
    where outcome = 'fail' and intact and phase in ('final', 'live')
    group by all;

create or replace temp table duplicated as
    select topic, partition, record_id, min("offset") as "offset", max("offset") as last_offset,
        count(distinct "offset") as copies
    from proven where phase in ('final', 'live') and record_id is not null
    group by all having copies > 1;

create or replace temp table phantom as
    select topic, partition, "offset", record_id, min(read_ns) as read_ns
    from reads where intact and (record_id is null or record_id not in (select record_id from sends))
    group by all;

create or replace temp table misplaced as
    select reads.topic, reads.partition, reads."offset", record_id, sends.topic as sent_topic,
        sends.partition as sent_partition, sends.key as sent_key, reads.key, min(read_ns) as read_ns
    from reads join sends using (record_id)
    where intact and (
        (reads.topic, reads.partition) != (sends.topic, sends.partition) or reads.key is distinct from sends.key
    )
    group by all;

create or replace temp table corrupted as
    select topic, partition, "offset", record_id, min(read_ns) as read_ns
    from reads where not intact
    group by all;
