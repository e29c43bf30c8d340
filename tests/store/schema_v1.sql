BEGIN TRANSACTION;
CREATE TABLE "_sqlite_migrations" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
);
INSERT INTO "_sqlite_migrations" VALUES(1,'algolen','0001_runs_and_counts','2026-11-30 15:00:59.946458+00:00');
CREATE TABLE artifacts (
        run_id TEXT NOT NULL REFERENCES runs(id), kind TEXT NOT NULL, path TEXT NOT NULL,
        sha256 TEXT NOT NULL, bytes INTEGER NOT NULL, step INTEGER NOT NULL,
        PRIMARY KEY (run_id, kind)
    ) WITHOUT ROWID;
CREATE TABLE configs (
        hash TEXT PRIMARY KEY CHECK (length(hash) = 16),
        task TEXT NOT NULL, task_version INTEGER NOT NULL,
        pe TEXT NOT NULL, expansion TEXT NOT NULL,
        train_shortest INTEGER NOT NULL, train_longest INTEGER NOT NULL CHECK (train_longest >= train_shortest),
        config_json TEXT NOT NULL CHECK (json_valid(config_json)),
        created_at TEXT NOT NULL
    );
INSERT INTO "configs" VALUES('0123456789abcdef','addition',1,'coupling','coupling',1,20,'{"task": "addition"}','2026-11-30T15:00:59.947+00:00');
CREATE TABLE counts (
        evaluation_id TEXT NOT NULL, step INTEGER NOT NULL, test_set TEXT NOT NULL, length INTEGER NOT NULL,
        axis TEXT NOT NULL DEFAULT '', axis_value REAL NOT NULL DEFAULT 0, stratum TEXT NOT NULL,
        units INTEGER NOT NULL CHECK (typeof(units) = 'integer' AND units > 0),
        exact INTEGER NOT NULL CHECK (typeof(exact) = 'integer' AND exact BETWEEN 0 AND units),
        tokens INTEGER NOT NULL CHECK (typeof(tokens) = 'integer' AND tokens >= units),
        tokens_correct INTEGER NOT NULL
            CHECK (typeof(tokens_correct) = 'integer' AND tokens_correct BETWEEN 0 AND tokens),
        PRIMARY KEY (evaluation_id, step, test_set, length, axis, axis_value, stratum),
        FOREIGN KEY (evaluation_id, step, test_set, length, axis, axis_value)
            REFERENCES points (evaluation_id, step, test_set, length, axis, axis_value)
    ) WITHOUT ROWID;
INSERT INTO "counts" VALUES('44e58867dc249731',5000,'random',10,'',0.0,'carry 0',1000,990,2000,1980);
CREATE TABLE curves (
        run_id TEXT NOT NULL REFERENCES runs(id), step INTEGER NOT NULL, name TEXT NOT NULL,
        value REAL, kind TEXT NOT NULL CHECK (kind IN ('finite', 'inf', '-inf', 'nan')),
        CHECK ((kind = 'finite') = (value IS NOT NULL)),
        PRIMARY KEY (run_id, step, name)
    ) WITHOUT ROWID;
CREATE TABLE environments (
        id TEXT PRIMARY KEY,
        python TEXT NOT NULL, torch TEXT NOT NULL, platform TEXT NOT NULL,
        device TEXT NOT NULL, device_name TEXT NOT NULL, threads INTEGER NOT NULL,
        algolen_version TEXT NOT NULL, git_commit TEXT, git_dirty INTEGER,
        compiled INTEGER NOT NULL, stack_width INTEGER NOT NULL
    );
INSERT INTO "environments" VALUES('d1e0385b125917c9','3.11.7','2.6.0','Linux','cpu','a processor',1,'0.1.0','abc123',0,0,1);
CREATE TABLE evaluations (
        id TEXT PRIMARY KEY CHECK (length(id) = 16),
        run_id TEXT NOT NULL REFERENCES runs(id), checkpoint TEXT NOT NULL,
        test_seed INTEGER NOT NULL, examples INTEGER NOT NULL, positions TEXT NOT NULL,
        extension TEXT NOT NULL DEFAULT '', purpose TEXT NOT NULL
    );
INSERT INTO "evaluations" VALUES('44e58867dc249731','0123456789abcdef-0','last',0,1000,'start 1','','report');
CREATE TABLE points (
        evaluation_id TEXT NOT NULL REFERENCES evaluations(id), step INTEGER NOT NULL,
        test_set TEXT NOT NULL, length INTEGER NOT NULL,
        axis TEXT NOT NULL DEFAULT '', axis_value REAL NOT NULL DEFAULT 0,
        examples INTEGER NOT NULL, sha256 TEXT NOT NULL, chance REAL, input_blind REAL,
        PRIMARY KEY (evaluation_id, step, test_set, length, axis, axis_value)
    ) WITHOUT ROWID;
INSERT INTO "points" VALUES('44e58867dc249731',5000,'random',10,'',0.0,1000,'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',0.1,0.2);
CREATE TABLE runs (
        id TEXT PRIMARY KEY CHECK (id = config_hash || '-' || seed),
        config_hash TEXT NOT NULL REFERENCES configs(hash), seed INTEGER NOT NULL,
        status TEXT NOT NULL REFERENCES statuses(name), attempt INTEGER NOT NULL DEFAULT 0,
        owner TEXT, heartbeat_at TEXT, started_at TEXT, finished_at TEXT, error TEXT,
        step INTEGER NOT NULL DEFAULT 0, steps INTEGER NOT NULL, parameters INTEGER, seconds REAL,
        greedy INTEGER NOT NULL CHECK (greedy IN (0, 1)),
        environment_id TEXT REFERENCES environments(id), shipped INTEGER NOT NULL DEFAULT 0,
        UNIQUE (config_hash, seed)
    );
INSERT INTO "runs" VALUES('0123456789abcdef-0','0123456789abcdef',0,'done',1,'laptop:123:456','2026-11-30T15:00:59.947+00:00','2026-11-30T15:00:59.947+00:00','2026-11-30T15:00:59.948+00:00',NULL,5000,5000,101000,412.5,1,'d1e0385b125917c9',0);
CREATE TABLE statuses (name TEXT PRIMARY KEY, meaning TEXT NOT NULL);
INSERT INTO "statuses" VALUES('pending','planned, waiting for a worker');
INSERT INTO "statuses" VALUES('running','held by a worker that reports in');
INSERT INTO "statuses" VALUES('done','trained to its last step');
INSERT INTO "statuses" VALUES('failed','ended by an error');
INSERT INTO "statuses" VALUES('diverged','the training loss was not finite');
INSERT INTO "statuses" VALUES('interrupted','stopped by the user; can be resumed');
INSERT INTO "statuses" VALUES('stale','its worker stopped reporting in');
INSERT INTO "statuses" VALUES('cancelled','taken out of the plan');
CREATE UNIQUE INDEX "idx__sqlite_migrations_migration_set_name"
    ON "_sqlite_migrations" ("migration_set", "name");
CREATE INDEX runs_by_status ON runs (status);
CREATE INDEX configs_by_task ON configs (task, pe);
CREATE INDEX evaluations_by_run ON evaluations (run_id);
CREATE VIEW v_runs AS
        SELECT r.id AS run, k.task, k.pe, k.expansion, k.train_shortest, k.train_longest, r.seed, r.status,
               r.step, r.steps, r.parameters, r.seconds, r.greedy, r.attempt, r.owner, r.heartbeat_at,
               r.started_at, r.finished_at, r.error, r.shipped, r.environment_id, r.config_hash, k.task_version
        FROM runs r JOIN configs k ON k.hash = r.config_hash;
CREATE VIEW v_length_curve AS
        SELECT e.run_id AS run, k.task, k.pe, e.extension, r.seed, e.checkpoint, e.purpose, c.test_set, c.axis,
               c.axis_value, c.length, k.train_shortest, k.train_longest, SUM(c.exact) AS exact, SUM(c.units) AS units,
               1.0 * SUM(c.exact) / SUM(c.units) AS exact_match,
               1.0 * SUM(c.tokens_correct) / SUM(c.tokens) AS token_accuracy,
               SUM(c.tokens_correct) AS tokens_correct, SUM(c.tokens) AS tokens, p.chance, p.input_blind,
               p.examples, p.sha256, c.step, e.id AS evaluation_id, e.test_seed, e.examples AS examples_asked,
               e.positions, k.expansion, r.config_hash, r.status
        FROM counts c
        JOIN (SELECT evaluation_id, MAX(step) AS step FROM points GROUP BY evaluation_id) newest
          ON newest.evaluation_id = c.evaluation_id AND newest.step = c.step
        JOIN points p ON p.evaluation_id = c.evaluation_id AND p.step = c.step AND p.test_set = c.test_set
          AND p.length = c.length AND p.axis = c.axis AND p.axis_value = c.axis_value
        JOIN evaluations e ON e.id = c.evaluation_id
        JOIN runs r ON r.id = e.run_id
        JOIN configs k ON k.hash = r.config_hash
        GROUP BY c.evaluation_id, c.step, c.test_set, c.length, c.axis, c.axis_value;
CREATE VIEW v_horizon AS
        WITH held AS (
            SELECT *, MIN(exact_match) OVER (
                PARTITION BY evaluation_id, test_set, axis, axis_value ORDER BY length
            ) AS worst_so_far
            FROM v_length_curve WHERE length >= train_shortest
        )
        SELECT run, task, pe, extension, seed, checkpoint, purpose, test_set, axis, axis_value, train_shortest,
               train_longest, MAX(CASE WHEN worst_so_far >= 0.95 THEN length END) AS horizon,
               MIN(worst_so_far) >= 0.95 AS at_end,
               1.0 * MAX(CASE WHEN worst_so_far >= 0.95 THEN length END) / train_longest AS factor,
               MAX(length) AS tested_to,
               1.0 * SUM(CASE WHEN length <= train_longest THEN exact END)
                   / SUM(CASE WHEN length <= train_longest THEN units END) AS in_distribution,
               evaluation_id, test_seed, examples_asked, positions, expansion, config_hash, status
        FROM held GROUP BY evaluation_id, test_set, axis, axis_value;
CREATE VIEW v_leaderboard AS
        WITH ranked AS (
            SELECT *, ROW_NUMBER() OVER (which ORDER BY coalesce(horizon, -1), at_end) AS place,
                   COUNT(*) OVER which AS seeds
            FROM v_horizon WHERE status = 'done' AND purpose = 'report'
            WINDOW which AS (PARTITION BY config_hash, checkpoint, test_set, axis, axis_value, extension,
                                          test_seed, examples_asked, positions)
        )
        SELECT task, pe, extension, expansion, train_shortest, train_longest, checkpoint, test_set, axis, axis_value,
               seeds, MAX(CASE WHEN place = (seeds + 1) / 2 THEN horizon END) AS median_horizon,
               MAX(CASE WHEN place = (seeds + 1) / 2 THEN at_end END) AS at_end,
               MAX(CASE WHEN place = (seeds + 1) / 2 THEN factor END) AS median_factor,
               MIN(horizon) AS shortest_horizon, MAX(horizon) AS longest_horizon,
               SUM(horizon IS NULL) AS without_horizon,
               (SELECT COUNT(*) FROM runs r WHERE r.config_hash = ranked.config_hash
                AND r.status IN ('failed', 'diverged')) AS failed_or_diverged,
               test_seed, examples_asked, positions, config_hash
        FROM ranked
        GROUP BY config_hash, checkpoint, test_set, axis, axis_value, extension, test_seed, examples_asked, positions
        ORDER BY task, median_horizon DESC;
COMMIT;
