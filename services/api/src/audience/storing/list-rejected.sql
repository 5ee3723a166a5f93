SELECT page.page, page.entries
FROM api.audience_rejected page JOIN api.audience ON audience.id = page.audience_id
WHERE page.audience_id = $1 AND audience.tenant_id = $2 AND audience.status = 'ready' AND page.page IN ($3::int, $3::int + 1)
ORDER BY page.page
