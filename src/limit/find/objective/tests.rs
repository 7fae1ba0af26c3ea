use super::*;
use Judgement::{Bad, BadAfterAll, Good, Nothing};

fn objective(text: &str) -> Objective {
    text.parse().unwrap()
}

#[test]
fn reads_objectives_and_prints_them() {
    for (text, printed) in [
        ("p95<400ms, errors<0.5%", "p95<400ms, errors<0.5%"),
        (" p99.9 head < 2s ", "p99.9<2s"),
        (
            "p50 whole<1m,4xx<2%,5xx<0.1%",
            "p50 whole<1m, 4xx<2%, 5xx<0.1%",
        ),
        ("p95<400ms,p95 whole<2s", "p95<400ms, p95 whole<2s"),
    ] {
        assert_eq!(objective(text).to_string(), printed, "{text}");
        assert_eq!(objective(printed), objective(text));
    }
}

#[test]
fn says_which_condition_is_wrong_and_what_to_write() {
    use ObjectiveProblem as P;
    for (text, condition, problem) in [
        ("", "", P::Empty),
        (" ", "", P::Empty),
        ("p95<400ms,", "", P::NoBound),
        ("p95", "p95", P::NoBound),
        ("p95=400ms", "p95=400ms", P::NoBound),
        ("mean<400ms", "mean<400ms", P::Figure),
        ("p<400ms", "p<400ms", P::Figure),
        ("p95 body<400ms", "p95 body<400ms", P::Figure),
        ("p95 head whole<400ms", "p95 head whole<400ms", P::Figure),
        ("p0<1s", "p0<1s", P::Quantile),
        ("p100<1s", "p100<1s", P::Quantile),
        ("p99.999<1s", "p99.999<1s", P::Quantile),
        ("p95<0.4s", "p95<0.4s", P::Time),
        ("errors<1%, p95<400", "p95<400", P::Time),
        ("p95<0", "p95<0", P::TimeRange),
        ("p95<11m", "p95<11m", P::TimeRange),
        ("errors<0%", "errors<0%", P::Share),
        ("errors<100%", "errors<100%", P::Share),
        ("errors<1", "errors<1", P::Share),
        ("p95<1s, p95 head<2s", "p95 head<2s", P::Twice),
        (
            "p1<1s,p2<1s,p3<1s,p4<1s,p5<1s,p6<1s,p7<1s,p8<1s,p9<1s",
            "p9<1s",
            P::TooMany,
        ),
    ] {
        let error = text.parse::<Objective>().unwrap_err();
        assert_eq!(
            (&*error.condition, error.problem),
            (condition, problem),
            "{text}"
        );
        assert!(error.to_string().contains(condition), "{error}");
    }
}

#[test]
fn an_error_is_no_fast_answer() {
    let it = objective("p95<400ms, p95 whole<2s, errors<1%, 4xx<5%");
    let judge = |event| -> Vec<_> { it.conditions().iter().map(|one| one.judge(event)).collect() };
    let ms = Duration::from_millis;
    for (event, judgements) in [
        (
            AnswerEvent::Head {
                took: ms(399),
                status: 200,
            },
            [Good, Nothing, Good, Good],
        ),
        (
            AnswerEvent::Head {
                took: ms(400),
                status: 200,
            },
            [Bad, Nothing, Good, Good],
        ),
        (
            AnswerEvent::Head {
                took: ms(1),
                status: 503,
            },
            [Bad, Nothing, Bad, Good],
        ),
        (
            AnswerEvent::Head {
                took: ms(1),
                status: 404,
            },
            [Good, Nothing, Good, Bad],
        ),
        (
            AnswerEvent::Whole {
                took: ms(1999),
                status: 200,
            },
            [Nothing, Good, Nothing, Nothing],
        ),
        (
            AnswerEvent::Whole {
                took: ms(2000),
                status: 200,
            },
            [Nothing, Bad, Nothing, Nothing],
        ),
        (
            AnswerEvent::Failed { had_head: false },
            [Bad, Bad, Bad, Good],
        ),
        (
            AnswerEvent::Failed { had_head: true },
            [Nothing, Bad, BadAfterAll, Nothing],
        ),
        (
            AnswerEvent::Abandoned {
                had_head: false,
                took: ms(500),
            },
            [Bad, Nothing, Nothing, Nothing],
        ),
        (
            AnswerEvent::Abandoned {
                had_head: true,
                took: ms(3000),
            },
            [Nothing, Bad, Nothing, Nothing],
        ),
    ] {
        assert_eq!(judge(event), judgements, "{event:?}");
    }
    assert_eq!(it.longest(), ms(2000));
    assert_eq!(objective("errors<1%").longest(), MAX_ANSWER);
}
