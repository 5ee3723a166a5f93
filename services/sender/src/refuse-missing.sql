SELECT sender.refuse_unanswered($1::uuid, $2::bytea[], $3::int[], $4::timestamptz, 'refused', $5::text)
