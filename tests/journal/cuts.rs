//! A record cut at every length resumes to the same end, under the same key,
//! with the same bytes.

use std::time::Duration;

use oncekey::engine::Entry;
use oncekey::journal::{Append, Journal, Memory, NewOperation, Sqlite, Status, Stored};
use oncekey::sandbox::{Fault, Sandbox};
use oncekey::{Effect, OperationId};

use crate::support::{Folder, builder, pay};

/// What goes wrong on the way to the one answer.
fn stories() -> Vec<(&'static str, Vec<Fault>)> {
    vec![
        ("nothing", vec![]),
        ("the answer is lost", vec![Fault::answer_lost()]),
        (
            "lost, refused by a gateway, in progress",
            vec![
                Fault::answer_lost(),
                Fault::status(503).retry_after("0.01"),
                Fault::in_progress(),
                Fault::in_progress(),
            ],
        ),
        ("cut, then lost", vec![Fault::body_cut(3), Fault::answer_lost()]),
        ("never carried out at first", vec![Fault::closed_without_executing(), Fault::status(500)]),
    ]
}

/// The record as it stood when this many entries were written.
async fn cut(journal: &dyn Journal, whole: &Stored, length: usize) {
    let entries = whole.entries()[..length].to_vec();
    let request = whole.request().unwrap().clone();
    // Its owner is nobody that lives.
    let operation = NewOperation::new(whole.identity().clone(), request, entries[..1].to_vec(), Status::Open);
    journal.insert(operation, Duration::from_secs(5)).await.unwrap();
    if length > 1 {
        let ended = matches!(entries.last(), Some(Entry::Ended { .. })) && length == whole.entries().len();
        let status = if ended { Status::Closed } else { Status::Open };
        let append = Append::new(whole.identity().id().clone(), 1, entries[1..].to_vec(), status)
            .with_answer(whole.answer().filter(|_| ended).cloned());
        journal.append(append, Duration::from_secs(5)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_cut_at_every_length_resumes_to_the_same_end() {
    let mut cuts = 0;
    for (story, faults) in stories() {
        let sandbox = Sandbox::start().await.unwrap();
        sandbox.fail_next(faults);
        let first = Memory::new();
        let client = builder().entropy_seed(1).journal(first.clone()).build().unwrap();
        let answer = pay(&client, &sandbox, "order-1", 45).send().await.unwrap();
        let whole = first.load(&OperationId::from("order-1")).await.unwrap().unwrap();
        assert_eq!(sandbox.executions(), 1, "{story}");
        for length in 1..=whole.entries().len() {
            let folder = Folder::new();
            // A file's fingerprints are made with its own key; resuming does not compare them.
            let journal = Sqlite::create(folder.file()).await.unwrap();
            cut(&journal, &whole, length).await;
            let client = builder().journal(journal.clone()).build().unwrap();
            let seen = sandbox.requests().len();
            let resumed = client.resume("order-1").send().await.unwrap();
            assert_eq!((resumed.bytes(), resumed.status()), (answer.bytes(), answer.status()), "{story}, {length}");
            assert_eq!(resumed.key(), answer.key());
            let record = client.lookup("order-1").await.unwrap().unwrap();
            assert_eq!((record.effect(), client.unfinished().await.unwrap().len()), (Effect::Applied, 0));
            assert!(record.entries().starts_with(&whole.entries()[..length]), "what was written stays");
            let ended = length == whole.entries().len();
            assert_eq!(sandbox.requests().len() - seen, usize::from(!ended), "{story}, {length}");
            cuts += 1;
        }
        let seen = sandbox.requests();
        let same = |request: &oncekey::sandbox::SeenRequest| {
            request.key() == seen[0].key() && request.body() == seen[0].body() && request.path() == seen[0].path()
        };
        assert!(seen.iter().all(same), "{story}: never a second key, never other bytes");
        assert_eq!(sandbox.executions(), 1, "{story}");
    }
    println!("{cuts} cuts, each resumed to the same end");
}
