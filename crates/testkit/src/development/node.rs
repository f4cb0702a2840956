//! JavaScript.

use super::Task;

pub(super) const TASKS: &[Task] = &[
    Task {
        name: "node_program",
        needs: &["node"],
        script: r#"
echo 'const fs = require("fs"); fs.writeFileSync("out", JSON.stringify({a: [1, 2].map((x) => 2 * x)}))' > a.js
node a.js
same "$(cat out)" '{"a":[2,4]}'
"#,
    },
    Task {
        name: "node_child_processes_and_workers",
        needs: &["node"],
        script: r#"
cat > a.js <<'END'
const { Worker, isMainThread, parentPort } = require('worker_threads');
const { execFileSync, fork } = require('child_process');
if (process.argv[2] === 'child') process.send('forked');
else if (isMainThread) {
  process.stdout.write(execFileSync('sh', ['-c', 'echo executed']));
  new Worker(__filename).on('message', (said) => {
    console.log(said);
    fork(__filename, ['child']).on('message', (said) => console.log(said));
  });
} else parentPort.postMessage('worked');
END
same "$(node a.js)" "executed
worked
forked"
"#,
    },
    Task {
        name: "node_server_and_watch",
        needs: &["node"],
        script: r#"
cat > a.js <<'END'
const fs = require('fs'), http = require('http');
const watcher = fs.watch('.', (_event, name) => { if (name === 'made') { console.log(name); watcher.close(); } });
fs.writeFileSync('made', '');
const server = http.createServer((_request, response) => response.end('served')).listen(0, '127.0.0.1', () =>
  http.get({ port: server.address().port, host: '127.0.0.1', agent: false }, (response) => {
    response.on('data', (data) => console.log(String(data))).on('end', () => server.close());
  }));
END
same "$(node a.js | sort)" "made
served"
"#,
    },
    Task {
        name: "node_tests",
        needs: &["node"],
        script: r#"
echo 'require("node:test")("sums", () => require("node:assert").equal(1 + 2, 3))' > sum.test.js
node --test > said
grep -Eq '^(#|ℹ) pass 1$' said
"#,
    },
    Task {
        name: "npm_init_and_run",
        needs: &["npm"],
        script: r#"
npm init -y > /dev/null
npm pkg set scripts.greet='echo hello from npm'
npm run greet | grep -qx 'hello from npm'
"#,
    },
    Task {
        name: "npm_install_of_a_local_package",
        needs: &["npm"],
        script: r#"
mkdir -p greeting app
echo 'module.exports = () => "hello"' > greeting/index.js
echo '{"name": "greeting", "version": "1.0.0", "bin": {"greet": "greet.js"}}' > greeting/package.json
printf '#!/usr/bin/env node\nconsole.log(require("./index.js")())\n' > greeting/greet.js
(cd greeting && npm pack --silent > /dev/null)
cd app
npm init -y > /dev/null
npm install --offline --no-audit --no-fund ../greeting/greeting-1.0.0.tgz
same "$(node -e 'console.log(require("greeting")())')" hello
same "$(npx --offline greet)" hello
"#,
    },
];
