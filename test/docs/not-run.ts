/**
 * Commands in the documentation that no test runs, each with the reason in the page. A command that is not listed fails
 * the test.
 */
export const NOT_RUN: readonly (readonly [page: string, reason: string])[] = [
  ['docs/configuration.md', 'its key file is looked for'],
  ['docs/cookbook.md', 'a workflow of GitHub Actions, not of Errand'],
  ['docs/development.md', "the first is this suite's own setup, the second serves until it is stopped"],
  ['docs/development.md', 'it is this suite itself'],
  ['docs/event-loop.md', 'takes minutes; the suite runs the short form'],
  ['docs/install.md', 'installs packages as root, and serves until it is stopped; test/package does the same'],
  ['docs/install.md', 'makes a Debian of some hundred MB; test/sandbox/rootfs.test.ts does'],
  ['docs/install.md', 'builds an image and runs it; test/deploy/docker does, on a Docker of its own'],
  ['docs/install.md', 'test/deploy/docker/compose.test.ts types these lines, on a Docker of its own'],
  ['docs/install.md', 'test/deploy/docker/compose.test.ts types these lines, on a Docker of its own'],
  ['docs/install.md', 'test/deploy/docker/compose.test.ts types these lines, on a Docker of its own'],
  ['docs/install.md', 'test/deploy/docker/compose.test.ts types these lines, on a Docker of its own'],
  ['docs/metrics.md', 'a configuration of Prometheus, not of Errand; test/deploy runs promtool over ours'],
  ['docs/operating.md', 'needs root, systemd and /opt; test/deploy checks the unit'],
  ['docs/operating.md', 'needs the service that was installed above'],
  ['docs/operating.md', 'needs the service that was installed above'],
  [
    'docs/operating.md',
    'needs the service that was installed above; test/deploy/operating.test.ts runs these lines on a server of its own',
  ],
  [
    'docs/operating.md',
    'needs the service that was installed above; test/store/deleted-content.test.ts runs this line on a server of its own',
  ],
  ['docs/postgres.md', 'needs a superuser of a Postgres; test/store runs on one with the same rights'],
  ['docs/postgres.md', 'as above'],
  ['docs/postgres.md', 'a line of the environment; test/nodes starts servers with the like'],
  ['docs/postgres.md', 'needs a Postgres with a database to dump; test/store does'],
  ['docs/skills.md', 'fetches a repository from elsewhere; test/skills/collection.test.ts reads one of that form'],
  ['docs/start.md', 'fetches the project from where you have it'],
  ['docs/start.md', 'installs packages as root, serves until it is stopped'],
  [
    'docs/start.md',
    "takes the build tool and httpx from PyPI; the tests take Debian's httpx and the client from the checkout",
  ],
  ['docs/tools.md', 'a setting of SearXNG, not of Errand'],
  ['docs/traces.md', 'serves until it is stopped; test/telemetry does, to a collector of its own'],
  ['README.md', 'the first serves until it is stopped, the others are this suite itself'],
  ['README.md', 'the first fetches a repository from elsewhere; skills add is run in docs/skills.md'],
  ['README.md', 'makes a Debian of some hundred MB; test/sandbox/rootfs.test.ts does'],
  ['README.md', 'needs a Docker daemon; test/sandbox does it with one of its own'],
  ['CONTRIBUTING.md', 'it is this suite itself'],
  ['CONTRIBUTING.md', 'it is this suite itself'],
]
