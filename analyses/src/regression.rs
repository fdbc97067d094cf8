//! Least squares: what each of several things costs, from sums of them.

/// A coefficient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coefficient {
    /// Its estimate.
    pub value: f64,
    /// The standard error of it, from the scatter of what is left.
    pub standard_error: f64,
}

/// The coefficients b of y = x·b, without a constant, for rows of x and y; `None` where the rows
/// cannot tell the columns apart, or are not more than the columns.
///
/// By the normal equations: b = (XᵀX)⁻¹Xᵀy, and the covariance of b is σ²(XᵀX)⁻¹ with σ² the sum of
/// squares of what is left over rows less columns.
#[must_use]
pub fn through_origin(rows: &[(Vec<f64>, f64)]) -> Option<Vec<Coefficient>> {
    let columns = rows.first()?.0.len();
    if columns == 0 || rows.len() <= columns {
        return None;
    }
    let mut products = vec![vec![0.0; columns]; columns];
    let mut sums = vec![0.0; columns];
    for (x, y) in rows {
        for (at, value) in x.iter().enumerate() {
            sums[at] += value * y;
            for (other, factor) in x.iter().enumerate() {
                products[at][other] += value * factor;
            }
        }
    }
    let inverse = inverse(products)?;
    let dot = |row: &[f64], with: &[f64]| -> f64 { row.iter().zip(with).map(|(a, b)| a * b).sum() };
    let values: Vec<f64> = inverse.iter().map(|row| dot(row, &sums)).collect();
    let left: f64 = rows.iter().map(|(x, y)| (y - dot(x, &values)).powi(2)).sum();
    let variance = left / (rows.len() - columns) as f64;
    let coefficient = |(at, &value): (usize, &f64)| Coefficient {
        value,
        standard_error: (variance * inverse[at][at]).max(0.0).sqrt(),
    };
    Some(values.iter().enumerate().map(coefficient).collect())
}

/// By Gauss and Jordan, with the largest pivot of each column; `None` where there is none.
fn inverse(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    /// A pivot so small beside its row's first size is rounding, not information.
    const NOTHING: f64 = 1e-9;
    let size = matrix.len();
    let scale: Vec<f64> = (0..size).map(|at| matrix[at][at].abs()).collect();
    let mut inverse: Vec<Vec<f64>> =
        (0..size).map(|row| (0..size).map(|at| f64::from(u8::from(at == row))).collect()).collect();
    for column in 0..size {
        let by_size =
            |&a: &usize, &b: &usize| matrix[a][column].abs().total_cmp(&matrix[b][column].abs());
        let best = (column..size).max_by(by_size)?;
        if matrix[best][column].abs() <= NOTHING * scale[column] {
            return None;
        }
        matrix.swap(column, best);
        inverse.swap(column, best);
        let pivot = matrix[column][column];
        for at in 0..size {
            matrix[column][at] /= pivot;
            inverse[column][at] /= pivot;
        }
        for row in (0..size).filter(|&row| row != column) {
            let factor = matrix[row][column];
            for at in 0..size {
                matrix[row][at] -= factor * matrix[column][at];
                inverse[row][at] -= factor * inverse[column][at];
            }
        }
    }
    Some(inverse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_costs_are_found_without_error() {
        let rows: Vec<_> = (0..20u32)
            .map(|n| {
                let x = vec![f64::from(n % 3), f64::from(n % 5 + 1)];
                let y = 6.0 * x[0] + 2.0 * x[1];
                (x, y)
            })
            .collect();
        let found = through_origin(&rows).unwrap();
        assert!((found[0].value - 6.0).abs() < 1e-9 && (found[1].value - 2.0).abs() < 1e-9);
        assert!(found.iter().all(|one| one.standard_error < 1e-6));
    }

    #[test]
    fn the_error_of_a_mean_is_that_of_the_text_books() {
        // One column of ones: the mean, 2, and the root of 2 / 2 / 3.
        let rows = [1.0, 2.0, 3.0].map(|y| (vec![1.0], y));
        let found = through_origin(&rows).unwrap();
        assert!((found[0].value - 2.0).abs() < 1e-12);
        assert!((found[0].standard_error - (1.0_f64 / 3.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn what_always_comes_together_cannot_be_told_apart() {
        let rows: Vec<_> =
            (1..9u32).map(|n| (vec![f64::from(n), 2.0 * f64::from(n)], 1.0)).collect();
        assert_eq!(through_origin(&rows), None);
        assert_eq!(through_origin(&rows[..2]), None, "no row more than columns");
        assert_eq!(through_origin(&[]), None);
    }
}
