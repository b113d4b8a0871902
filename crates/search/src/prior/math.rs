//! The few transcendental functions that priors need, from additions, multiplications and divisions only: those are exact in IEEE
//! arithmetic, while `exp` and `ln` of the platform differ between versions of its library and would change counts.

/// e^x for |x| up to 700; relative error below 1e-12.
pub(crate) fn exp(x: f64) -> f64 {
    let small = x.clamp(-700.0, 700.0) / 1024.0;
    // The series of e^small to the eighth power of |small| < 0.7, then ten squarings.
    let mut sum = 1.0;
    for k in (1..=14).rev() {
        sum = 1.0 + sum * small / f64::from(k);
    }
    for _ in 0..10 {
        sum *= sum;
    }
    sum
}

/// ln(1 + e^-x), that is -ln of the logistic function of x.
pub(crate) fn minus_ln_logistic(x: f64) -> f64 {
    let u = exp(-x.abs());
    // ln(1 + u) = 2 artanh(u / (2 + u)), whose argument is at most 1/3.
    let z = u / (2.0 + u);
    let mut sum = 0.0;
    for k in (0..24).rev() {
        sum = sum * z * z + 1.0 / f64::from(2 * k + 1);
    }
    2.0 * z * sum + (-x).max(0.0)
}

/// The logistic function 1 / (1 + e^-x).
pub(crate) fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + exp(-x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_platform() {
        for step in -400..=400 {
            let x = f64::from(step) / 10.0;
            assert!((exp(x) / x.exp() - 1.0).abs() < 1e-11, "{x}");
            let expected = if x < 0.0 { -x + x.exp().ln_1p() } else { (-x).exp().ln_1p() };
            assert!((minus_ln_logistic(x) - expected).abs() <= 1e-11 * expected.max(1e-3), "{x}");
        }
    }
}
