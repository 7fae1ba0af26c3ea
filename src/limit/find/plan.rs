use std::time::Duration;

use super::report::Level;
use super::scale::Scale;
use super::settings::FindSettings;

/// Longest list of levels in a plan.
const MAX_LEVELS: usize = 2000;

/// What an experiment will do at most: `--dry-run`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindPlan {
    /// The levels of each target if no step breaks or comes near the edge.
    pub levels: Vec<Vec<Level>>,
    /// How long it takes if each step is good at once, with the confirmations.
    pub shortest: Duration,
    /// How long it may take if each step is undecided until its end, with a search of the edge.
    ///
    /// Steps near the edge are smaller, and waiting for requests takes its own time, so it is an
    /// estimate.
    pub longest: Duration,
}

/// Says what an experiment will do.
#[must_use]
pub fn plan(settings: &FindSettings) -> FindPlan {
    let step = settings.step_part();
    let mut all = FindPlan {
        levels: Vec::new(),
        shortest: Duration::ZERO,
        longest: Duration::ZERO,
    };
    let timing = settings.timing;
    let settle = settings
        .objective
        .longest()
        .clamp(Duration::from_secs(1), Duration::from_secs(10));
    for target in &settings.targets {
        let scale = Scale::new(*target);
        let mut number = scale.bottom();
        let mut levels = vec![scale.level(number)];
        while number < scale.top() && levels.len() < MAX_LEVELS {
            number = scale.up(number, step);
            levels.push(scale.level(number));
        }
        let count = u32::try_from(levels.len()).unwrap_or(u32::MAX);
        let confirm = settle + timing.confirm;
        all.shortest += (settle + timing.min_step) * count + confirm;
        // A breach, its recovery, one level between, and the level that broke once more.
        let edge = (settle + timing.max_step) * 3 + timing.recover * 2;
        all.longest += (settle + timing.max_step) * count + edge + confirm;
        all.levels.push(levels);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::find::{Target, Timing};

    #[test]
    fn says_the_levels_and_how_long_they_take() {
        let settings = FindSettings {
            targets: vec![
                Target::Rate {
                    from: "50r/s".parse().unwrap(),
                    to: "60r/s".parse().unwrap(),
                },
                Target::Places { from: 1, to: 3 },
            ],
            objective: "p95<400ms".parse().unwrap(),
            step: "5%".parse().unwrap(),
            until: None,
            only: None,
            figures: Vec::new(),
            timing: Timing::default(),
        };
        let plan = super::plan(&settings);
        let shown: Vec<Vec<String>> = plan
            .levels
            .iter()
            .map(|levels| levels.iter().map(ToString::to_string).collect())
            .collect();
        assert_eq!(
            shown[0],
            ["50r/s", "52.5r/s", "55.1r/s", "57.9r/s", "60r/s"]
        );
        assert_eq!(shown[1], ["1", "2", "3"]);
        let mut tiny = settings.clone();
        tiny.step = "0.01%".parse().unwrap();
        tiny.targets.truncate(1);
        assert_eq!(super::plan(&tiny).levels[0][1].to_string(), "50.5r/s");
        // Eight steps of 21 s, and two minutes with a second each.
        assert_eq!(plan.shortest, Duration::from_secs(8 * 21 + 2 * 61));
        assert!(plan.longest < Duration::from_secs(3000));
    }
}
