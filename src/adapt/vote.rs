//! The outcome of a vote: one pure function of the votes.

/// The option with the most votes, of `votes` in the order of the voters; among several with equally many, the one that has
/// the earliest voter. `None` without a vote.
pub fn winner(votes: &[u32]) -> Option<u32> {
    let count = |option: u32| votes.iter().filter(|vote| **vote == option).count();
    let max = votes.iter().map(|vote| count(*vote)).max()?;
    votes.iter().copied().find(|vote| count(*vote) == max)
}

/// The option that more than half of `voters` have voted for, if there is one: the other votes cannot change the
/// outcome.
pub fn settled(votes: &[u32], voters: u32) -> Option<u32> {
    let leader = winner(votes)?;
    let count = votes.iter().filter(|vote| **vote == leader).count();
    (count * 2 > voters as usize).then_some(leader)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn most_votes_win_and_the_earliest_voter_breaks_a_tie() {
        assert_eq!(winner(&[]), None);
        assert_eq!(winner(&[2]), Some(2));
        assert_eq!(winner(&[0, 2, 2]), Some(2));
        assert_eq!(winner(&[2, 0, 1]), Some(2), "the first voter's");
        assert_eq!(
            winner(&[1, 0, 2, 0, 2]),
            Some(0),
            "of two with two votes each, the one that was named first"
        );
        assert_eq!((settled(&[1, 1], 3), settled(&[1, 0], 3), settled(&[1], 2)), (Some(1), None, None));
    }

    proptest! {
        #[test]
        fn what_is_settled_wins_whatever_the_others_say(
            votes in proptest::collection::vec(0..4_u32, 0..6), more in proptest::collection::vec(0..4_u32, 0..6)
        ) {
            let voters = (votes.len() + more.len()) as u32;
            if let Some(leader) = settled(&votes, voters) {
                let all: Vec<u32> = votes.iter().chain(&more).copied().collect();
                prop_assert_eq!(winner(&all), Some(leader));
                // In whatever order the votes are counted.
                let turned: Vec<u32> = all.iter().rev().copied().collect();
                prop_assert_eq!(winner(&turned), Some(leader));
            }
            prop_assert_eq!(winner(&votes).is_some(), !votes.is_empty());
        }
    }
}
