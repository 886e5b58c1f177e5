//! The rows of a summary as CSV.

use super::fields::{cuda_fields, fields};
use super::{CudaTimes, Row, Summary};
use crate::report::text::{Field, csv};

pub(super) fn render(summary: &Summary) -> String {
    let header = csv::header(&columns(&Row::default()));
    let lines = summary.rows.iter().map(|row| csv::line(&columns(row)));
    std::iter::once(header).chain(lines).collect()
}

fn columns(row: &Row) -> Vec<Field> {
    let cuda = match &row.cuda {
        Some(times) => cuda_fields(times),
        None => cuda_fields(&CudaTimes::default())
            .into_iter()
            .map(Field::without_value)
            .collect(),
    };
    let mut columns = fields(row);
    columns.extend(cuda.into_iter().map(|field| field.prefixed("cuda")));
    columns
}
