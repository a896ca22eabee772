//! Combines rankings of scenes: reciprocal rank fusion (Cormack, Clarke and Buettcher, "Reciprocal Rank Fusion
//! outperforms Condorcet and individual Rank Learning Methods", 2009).

use std::collections::{BTreeMap, BTreeSet};

/// How little the first ranks count more than later ones; the value of the paper.
const K: f64 = 60.0;

/// How many of the best scenes of each ranking come first, whatever the other rankings say. Otherwise a scene that only
/// one ranking has first would follow all scenes that two rankings have among the first sixty.
const SURE: usize = 6;

/// The indexes of all scenes of `rankings`, best first: the best ones of each ranking in turn, then the others by their
/// reciprocal rank fusion.
pub(super) fn combine(rankings: &[Vec<usize>]) -> Vec<usize> {
    let best =
        (0..SURE).flat_map(|rank| rankings.iter().filter_map(move |ranking| ranking.get(rank)).copied());
    let mut seen = BTreeSet::new();
    best.chain(fuse(rankings)).filter(|place| seen.insert(*place)).collect()
}

/// The places of all scenes of `rankings`, best first: each ranking adds `1 / (K + rank)` to a scene. Scenes with equal
/// sums are in the order of the catalogue. A scene that a ranking repeats counts once, at its best rank.
fn fuse(rankings: &[Vec<usize>]) -> Vec<usize> {
    let mut sums: BTreeMap<usize, f64> = BTreeMap::new();
    for ranking in rankings {
        let mut ranks: BTreeMap<usize, usize> = BTreeMap::new();
        for place in ranking {
            let next = ranks.len() + 1;
            ranks.entry(*place).or_insert(next);
        }
        for (place, rank) in ranks {
            *sums.entry(place).or_default() += 1.0 / (K + rank as f64);
        }
    }
    let mut fused: Vec<(usize, f64)> = sums.into_iter().collect();
    fused.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.cmp(b)));
    fused.into_iter().map(|(place, _)| place).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_scene_that_both_rankings_have_precedes_those_of_one() {
        assert_eq!(fuse(&[vec![4, 2], vec![7, 2]]), [2, 4, 7]);
    }

    #[test]
    fn equal_sums_are_in_the_order_of_the_catalogue() {
        assert_eq!(fuse(&[vec![5, 1], vec![1, 5]]), [1, 5]);
        assert_eq!(fuse(&[vec![9], vec![3]]), [3, 9]);
    }

    #[test]
    fn single_ranking_is_unchanged() {
        assert_eq!(fuse(&[vec![3, 1, 3, 2], Vec::new()]), [3, 1, 2]);
        assert_eq!(fuse(&[]), [0_usize; 0]);
    }

    #[test]
    fn best_scenes_of_one_ranking_precede_what_both_rankings_have_later() {
        let words: Vec<usize> = (0..40).collect();
        let mut similar: Vec<usize> = vec![90, 91];
        similar.extend(1..40);
        assert_eq!(fuse(&[words.clone(), similar.clone()])[39..], [0, 90, 91]);
        assert_eq!(combine(&[words.clone(), similar])[..4], [0, 90, 1, 91]);
        assert_eq!(combine(&[words.clone(), Vec::new()]), words);
    }

    proptest! {
        #[test]
        fn every_scene_is_ranked_once_and_the_order_of_rankings_does_not_matter(
            one in prop::collection::vec(0_usize..50, 0..60),
            two in prop::collection::vec(0_usize..50, 0..60),
        ) {
            let fused = fuse(&[one.clone(), two.clone()]);
            prop_assert_eq!(&fused, &fuse(&[two.clone(), one.clone()]));
            let mut combined = combine(&[one.clone(), two.clone()]);
            combined.sort_unstable();
            let mut places = fused;
            places.sort_unstable();
            prop_assert_eq!(&combined, &places);
            let mut expected = [one, two].concat();
            expected.sort_unstable();
            expected.dedup();
            prop_assert_eq!(places, expected);
        }
    }
}
