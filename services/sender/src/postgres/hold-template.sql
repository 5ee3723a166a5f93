INSERT INTO sender.template_hold (template_key, until, detail) VALUES ($1, sender.instant($2::double precision), $3)
ON CONFLICT (template_key) DO UPDATE SET until = excluded.until, detail = excluded.detail
