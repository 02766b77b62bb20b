#include "store/schema.h"

namespace weir::store {

// Rows are written in the order of their keys, so that a table needs no index for what belongs together:
//   the blocks of a function are     first_block … first_block + blocks - 1,
//   the children of a context are    first_child … first_child + children - 1, the one with the largest total first.
const char* const create_tables = R"(
CREATE TABLE weir(kind TEXT NOT NULL, schema INTEGER NOT NULL, version TEXT NOT NULL);
CREATE TABLE run(directory TEXT, cpu TEXT, host_cpu TEXT, cycles_per_second INTEGER, clock TEXT, os_separate INTEGER,
  os_model TEXT, full_paths INTEGER, started INTEGER, ended INTEGER, complete INTEGER, user_time INTEGER, system_time INTEGER);
CREATE TABLE run_word(kind TEXT NOT NULL, position INTEGER NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY(kind, position)) WITHOUT ROWID;
CREATE TABLE sampling(event TEXT, source TEXT, rate REAL, period INTEGER, unwind TEXT, confidence INTEGER, verify INTEGER,
  sees_kernel INTEGER, samples INTEGER, frames INTEGER, frames_unwound INTEGER, frames_heuristic INTEGER,
  frames_by_frame_pointer INTEGER, truncated INTEGER, no_room INTEGER, lost INTEGER, late INTEGER,
  verify_differences INTEGER, distrusted INTEGER, new_maps INTEGER);
CREATE TABLE sampling_reason(kind TEXT NOT NULL, reason TEXT NOT NULL, samples INTEGER,
  PRIMARY KEY(kind, reason)) WITHOUT ROWID;
CREATE TABLE string(id INTEGER PRIMARY KEY, text TEXT NOT NULL);

CREATE TABLE image(id INTEGER PRIMARY KEY, path TEXT NOT NULL, build_id TEXT, size INTEGER, modified INTEGER);
CREATE TABLE function(id INTEGER PRIMARY KEY, image INTEGER, offset INTEGER, size INTEGER, linkage_name INTEGER,
  name INTEGER NOT NULL, file INTEGER, line INTEGER, first_block INTEGER, blocks INTEGER, named_by TEXT, clone TEXT,
  has_code INTEGER);
CREATE TABLE block(id INTEGER PRIMARY KEY, function INTEGER, offset INTEGER, bytes BLOB, instructions INTEGER,
  cycles INTEGER);
CREATE TABLE block_line(block INTEGER NOT NULL, position INTEGER NOT NULL, file INTEGER, line INTEGER, inlined INTEGER,
  instructions INTEGER, cycles INTEGER, scope INTEGER, is_counted INTEGER,
  PRIMARY KEY(block, position)) WITHOUT ROWID;
CREATE TABLE site(id INTEGER PRIMARY KEY, function INTEGER, offset INTEGER, kind TEXT, file INTEGER, line INTEGER,
  holder INTEGER, scope INTEGER);
CREATE TABLE scope(id INTEGER PRIMARY KEY, function INTEGER, parent INTEGER, inlined INTEGER, site INTEGER, entry INTEGER);
CREATE TABLE source(file INTEGER PRIMARY KEY, size INTEGER, hash INTEGER);

CREATE TABLE process(id INTEGER PRIMARY KEY, pid INTEGER, parent INTEGER, started INTEGER, ended INTEGER,
  exit_status INTEGER, ended_by TEXT);
CREATE TABLE process_word(process INTEGER NOT NULL, kind TEXT NOT NULL, position INTEGER NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY(process, kind, position)) WITHOUT ROWID;
CREATE TABLE thread(id INTEGER PRIMARY KEY, process INTEGER, tid INTEGER, name TEXT, cycles INTEGER,
  instructions INTEGER, os_time INTEGER, waited INTEGER);

CREATE TABLE function_count(function INTEGER NOT NULL, thread INTEGER NOT NULL, calls INTEGER, self INTEGER,
  self_min INTEGER, self_max INTEGER, total INTEGER, os_calls INTEGER, os_time INTEGER, os_time_total INTEGER,
  waited INTEGER, waited_total INTEGER, inlined INTEGER, is_estimate INTEGER,
  PRIMARY KEY(function, thread)) WITHOUT ROWID;
CREATE TABLE call_count(callee INTEGER NOT NULL, site INTEGER NOT NULL, thread INTEGER NOT NULL, calls INTEGER,
  total INTEGER, os_time_total INTEGER, waited_total INTEGER, self_min INTEGER, self_max INTEGER,
  PRIMARY KEY(callee, site, thread)) WITHOUT ROWID;
CREATE TABLE folded_function_count(function INTEGER NOT NULL, thread INTEGER NOT NULL, calls INTEGER, self INTEGER,
  self_min INTEGER, self_max INTEGER, total INTEGER, os_calls INTEGER, os_time INTEGER, os_time_total INTEGER,
  waited INTEGER, waited_total INTEGER, inlined INTEGER, is_estimate INTEGER,
  PRIMARY KEY(function, thread)) WITHOUT ROWID;
CREATE TABLE folded_call_count(callee INTEGER NOT NULL, site INTEGER NOT NULL, thread INTEGER NOT NULL, calls INTEGER,
  total INTEGER, os_time_total INTEGER, waited_total INTEGER, self_min INTEGER, self_max INTEGER,
  PRIMARY KEY(callee, site, thread)) WITHOUT ROWID;
CREATE TABLE block_count(block INTEGER NOT NULL, thread INTEGER NOT NULL, count INTEGER, extra INTEGER,
  PRIMARY KEY(block, thread)) WITHOUT ROWID;
CREATE TABLE context(id INTEGER PRIMARY KEY, thread INTEGER, parent INTEGER, site INTEGER, function INTEGER,
  calls INTEGER, self INTEGER, os_time INTEGER, waited INTEGER, total INTEGER, os_time_total INTEGER,
  waited_total INTEGER, first_child INTEGER, children INTEGER);
CREATE TABLE leaf_count(context INTEGER NOT NULL, block INTEGER NOT NULL, samples INTEGER,
  PRIMARY KEY(context, block)) WITHOUT ROWID;
CREATE TABLE folded_context(id INTEGER PRIMARY KEY, thread INTEGER, parent INTEGER, site INTEGER, function INTEGER,
  calls INTEGER, self INTEGER, os_time INTEGER, waited INTEGER, total INTEGER, os_time_total INTEGER,
  waited_total INTEGER, first_child INTEGER, children INTEGER);
CREATE TABLE folded_leaf_count(context INTEGER NOT NULL, block INTEGER NOT NULL, samples INTEGER,
  PRIMARY KEY(context, block)) WITHOUT ROWID;
CREATE TABLE os_call(number INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE os_count(function INTEGER NOT NULL, number INTEGER NOT NULL, thread INTEGER NOT NULL, calls INTEGER,
  errors INTEGER, time INTEGER, class TEXT, waited INTEGER,
  PRIMARY KEY(function, number, thread)) WITHOUT ROWID;

CREATE VIEW function_total AS
  SELECT f.id, n.text AS name, i.path AS image, f.offset, s.text AS file, f.line, sum(c.calls) AS calls,
    sum(c.self) AS self, sum(c.total) AS total, min(c.self_min) AS self_min, max(c.self_max) AS self_max,
    sum(c.os_calls) AS os_calls, sum(c.os_time) AS os_time, sum(c.os_time_total) AS os_time_total,
    sum(c.waited) AS waited, sum(c.waited_total) AS waited_total
  FROM function f JOIN function_count c ON c.function = f.id JOIN string n ON n.id = f.name
    LEFT JOIN image i ON i.id = f.image LEFT JOIN string s ON s.id = f.file
  GROUP BY f.id;
)";

const char* const create_indices = R"(
CREATE INDEX site_function ON site(function);
CREATE INDEX call_count_site ON call_count(site);
CREATE INDEX folded_call_count_site ON folded_call_count(site);
CREATE INDEX site_holder ON site(holder);
)";

}  // namespace weir::store
