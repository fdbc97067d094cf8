//! Holm's step-down correction: many cells, one chance of a false alarm.

/// The family's chance of a false alarm.
pub const LEVEL: f64 = 0.05;

/// Adjusted p-values in the order given: the k-th smallest of m (k from 0) times m − k, never
/// smaller than the one before it, at most 1 (Holm 1979).
#[must_use]
pub fn adjust(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut floor: f64 = 0.0;
    for (rank, &index) in order.iter().enumerate() {
        let factor = (p_values.len() - rank) as f64;
        floor = floor.max((p_values[index] * factor).min(1.0));
        adjusted[index] = floor;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_textbook_example_comes_out() {
        let adjusted = adjust(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        for (got, wanted) in adjusted.iter().zip(expected) {
            assert!((got - wanted).abs() < 1e-12, "{adjusted:?}");
        }
    }

    #[test]
    fn one_cell_needs_no_correction_and_none_has_none() {
        assert_eq!(adjust(&[0.04]), [0.04]);
        assert!(adjust(&[]).is_empty());
    }
}
