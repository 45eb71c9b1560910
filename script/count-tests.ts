/**
 * Reads vitest's JSON report, whose path is the argument. Prints `PASSED FAILED SKIPPED`, and the names of failed and skipped tests
 * on stderr. A file that could not be loaded counts as one failure. Exit code 1: there is no report.
 */
import { readFileSync } from 'node:fs'

interface Report {
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly message?: string
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[]
  }[]
}

const report = JSON.parse(readFileSync(process.argv[2]!, 'utf8')) as Report
const counts = { passed: 0, failed: 0, skipped: 0 }

for (const file of report.testResults) {
  for (const { status, fullName } of file.assertionResults) {
    const outcome = status === 'passed' || status === 'failed' ? status : 'skipped'
    counts[outcome]++
    if (outcome !== 'passed') process.stderr.write(`${outcome}: ${fullName}\n`)
  }
  if (file.status === 'failed' && !file.assertionResults.some(({ status }) => status === 'failed')) {
    counts.failed++
    process.stderr.write(`failed: ${file.name} ${file.message ?? ''}\n`)
  }
}

process.stdout.write(`${counts.passed} ${counts.failed} ${counts.skipped}\n`)
