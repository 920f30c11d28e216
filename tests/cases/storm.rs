//! Many clients and a server that comes back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::checks::{Problems, count, may_have_been_received, one_key};
use crate::data::{Outcome, Reply, Report};
use crate::record::{Record, Seen};
use crate::run::{Findings, Name, Run};
use crate::scene::{BODY, CAPTURED, client, pay, timed};
use crate::script::{Server, answer};

const OPERATIONS: usize = 200;
const DOWN: Duration = Duration::from_secs(1);

pub(crate) fn storm_01(report: &Report) -> Vec<Run> {
    let settings = report.client.clone();
    let expect = report.expect.clone();
    let play = async move {
        let script = |_, since_first| match since_first < DOWN {
            true => answer(false, Reply::json(503, "{\"code\":\"BUSY\"}")),
            false => answer(true, Reply::json(201, CAPTURED)),
        };
        let server = Arc::new(Server::start(Box::new(script), 0).await);
        let client = client(&settings).build().unwrap();
        let mut operations = JoinSet::new();
        for _ in 0..OPERATIONS {
            let request = pay(&client, &server.url("/pay"), BODY.to_vec());
            operations.spawn(async move { timed(request).await.0 });
        }
        let (mut problems, mut logged) = (Problems::default(), 0);
        problems.same("the report's outcome", expect.outcome, Outcome::Success);
        for sent in operations.join_all().await {
            match sent {
                Ok(response) => {
                    problems.same("status", Some(response.status().as_u16()), expect.http_status);
                    logged += response.attempts().iter().filter(|attempt| may_have_been_received(attempt)).count();
                }
                Err(error) => problems.that(false, format!("{error:?}")),
            }
        }
        let record = server.record();
        problems.same("attempts logged as sent against requests seen", logged, record.requests.len());
        problems.same("executions", record.executed.len(), expect.executions);
        problems.same("distinct keys", record.distinct_keys().len(), expect.distinct_keys);
        count("requests on the wire", expect.wire_requests, record.requests.len(), &mut problems);
        for (index, seen) in record.requests.iter().enumerate() {
            one_key(index + 1, seen, None, &mut problems);
            problems.that(seen.body == BODY, format!("the body of request {} is another", index + 1));
        }
        let busiest = spread(&record, &mut problems);
        let summary = format!("{} requests, busiest bucket {busiest} %", record.requests.len());
        Findings { problems, summary, details: String::new() }
    };
    vec![Run::new(Name::AsGiven, play)]
}

const BUCKET: Duration = Duration::from_millis(100);

/// With fewer open than this the share rises by itself: each of those that are
/// left comes back within the longest delay, and the last one is all of them.
const ENOUGH: usize = OPERATIONS / 2;

/// From 300 ms on no 100 ms hold more than 60 % of the operations that are
/// still open; the largest share that was found, in percent.
fn spread(record: &Record, problems: &mut Problems) -> usize {
    let mut firsts = BTreeMap::new();
    for seen in &record.requests {
        firsts.entry(seen.key()).or_insert(seen.arrived);
    }
    // Counted from when all of them have come: a slow machine takes its time over that.
    let (Some(all_here), Some(last)) =
        (firsts.into_values().max(), record.requests.iter().map(|seen| seen.arrived).max())
    else {
        return 0;
    };
    let keys = |which: &dyn Fn(&Seen) -> bool| {
        record.requests.iter().filter(|seen| which(seen)).map(Seen::key).collect::<BTreeSet<String>>().len()
    };
    let bucket = |number: u32| all_here + BUCKET * number;
    let mut busiest = 0;
    for number in (3..).take_while(|number| bucket(*number) <= last) {
        let (start, end) = (bucket(number), bucket(number + 1));
        let answered = |seen: &Seen| seen.answered.is_some_and(|at| at < start);
        let done = keys(&|seen| answered(seen) && seen.reply.as_ref().is_some_and(|reply| reply.status == 201));
        let open = OPERATIONS.saturating_sub(done);
        if open < ENOUGH {
            break;
        }
        let came = keys(&|seen| start <= seen.arrived && seen.arrived < end);
        busiest = busiest.max(came * 100 / open);
        problems.that(came * 100 <= open * 60, format!("{came} of {open} operations in bucket {number}"));
    }
    busiest
}
