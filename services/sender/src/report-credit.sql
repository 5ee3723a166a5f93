SELECT scheduler.report_credit($1::text, $2::uuid[], $3::int[])
