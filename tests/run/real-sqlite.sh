# Sqlite3: tables, indexes, joins, recursion, transactions, the file itself.
. "$(dirname "$0")/lib.sh"
need sqlite3
cat >"$T/script.sql" <<'S'
PRAGMA journal_mode = WAL; CREATE TABLE t(id INTEGER PRIMARY KEY, k INT, name TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) INSERT INTO t SELECT i, i * 7919 % 1009, printf('name %d', i % 77) FROM n;
CREATE INDEX by_k ON t(k); SELECT count(*), sum(k), max(name), avg(id) FROM t; SELECT k, count(*) c FROM t GROUP BY k ORDER BY c DESC, k LIMIT 5;
BEGIN; DELETE FROM t WHERE k % 3 = 0; SELECT count(*) FROM t; ROLLBACK; UPDATE t SET name = upper(name) WHERE id % 2; SELECT a.id, b.id FROM t a JOIN t b ON a.k = b.k AND a.id < b.id ORDER BY 1, 2 LIMIT 5 OFFSET 1000;
SELECT group_concat(name, '|') FROM (SELECT DISTINCT name FROM t WHERE name LIKE '%7%' ORDER BY 1); SELECT row_number() OVER (ORDER BY k, id), id FROM t LIMIT 3; SELECT json_extract('{"a":[1,2,{"b":3}]}', '$.a[2].b'), hex(zeroblob(3)), round(2.0 / 3, 9);
EXPLAIN QUERY PLAN SELECT * FROM t WHERE k = 5; PRAGMA integrity_check; SELECT * FROM missing;
S
STATUS=1 STDIN=$T/script.sql same sqlite3 file.db
same bash -c "sqlite3 a.db <$T/script.sql >/dev/null 2>&1; sqlite3 a.db .dump | sha256sum"
