/** The Python packages of a sandbox, for a model whose pip finds no package. */
import { type Sandbox, SandboxError } from '../sandbox/port.ts'
import type { ToolContext } from './port.ts'
import { runProgram } from './run-program.ts'

const MAX_BYTES = 1_000
const TIMEOUT_MS = 5_000

/** Prints the names, well-known ones first, up to the number of bytes that its argument says. */
const SOURCE = `
import importlib.metadata, sys
KNOWN = ('numpy pandas scipy matplotlib seaborn scikit-learn statsmodels sympy pillow openpyxl xlsxwriter python-docx python-pptx '
         'reportlab pypdf pdfplumber lxml beautifulsoup4 requests pyyaml jinja2 sqlalchemy networkx pytest').split()
names = {str(each.metadata['Name']).lower() for each in importlib.metadata.distributions()}
ordered = [name for name in KNOWN if name in names] + sorted(names.difference(KNOWN, ('pip', 'setuptools', 'wheel', 'none')))
shown, room = [], int(sys.argv[1]) - 30
for name in ordered:
    room -= len(name.encode()) + 2
    if room < 0:
        break
    shown.append(name)
more = len(ordered) - len(shown)
print(', '.join(shown) + (' and %d more' % more if more else ''), end='')
`

/** Returns undefined if they can't be listed. */
export async function installedPackages(sandbox: Sandbox, context: ToolContext): Promise<string | undefined> {
  const terms = { maxBytes: MAX_BYTES, timeoutMs: Math.min(TIMEOUT_MS, context.remainingMs()), signal: context.signal }
  try {
    const listed = await runProgram(sandbox, ['python3', '-c', SOURCE, String(MAX_BYTES)], terms)
    return listed.ok ? listed.output.toString('utf8').replaceAll('\n', ' ') : undefined
  } catch (error) {
    if (error instanceof SandboxError || context.signal.aborted) return undefined
    throw error
  }
}
