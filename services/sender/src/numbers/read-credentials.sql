SELECT n.number_id, n.version, n.credentials
FROM api.number_public AS n
WHERE n.number_id = ANY ($1::uuid[])
