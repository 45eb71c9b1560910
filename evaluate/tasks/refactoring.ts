/** Replacement of an interface in 24 Python modules that use it in six ways. */
import { below, runPython } from '../python.ts'
import type { Task } from '../task.ts'

const MODULES = 24

const LEGACY = `"""The old interface. To be removed."""

from mail.outbox import OUTBOX


def legacy_send(to, subject, body, cc=None, urgent=False):
    OUTBOX.append((to, ("URGENT: " if urgent else "") + subject, body, cc or []))
`

const MAILER = `"""The new interface."""

from dataclasses import dataclass, field

from mail.outbox import OUTBOX


@dataclass
class Message:
    recipient: str
    subject: str
    text: str
    copies: list = field(default_factory=list)


class Mailer:
    def __init__(self, priority="normal"):
        self.priority = priority

    def deliver(self, message):
        prefix = "URGENT: " if self.priority == "high" else ""
        OUTBOX.append((message.recipient, prefix + message.subject, message.text, message.copies))
`

const INSTRUCTION = `shop/ is a Python project whose ${MODULES} modules in shop/jobs/ send mail with mail.legacy.legacy_send.
Change all of them to the new interface of shop/mail/mailer.py: build a Message and pass it to Mailer().deliver, or to
Mailer(priority="high").deliver for urgent mail. What each module sends must stay exactly the same.
Then delete mail/legacy.py. The words legacy and legacy_send must not appear in the project any more.
Each module has a function run(name) that is called with a user's name; "cd shop; python3 -c 'from jobs import job_01; job_01.run(\\"ada\\")'" runs one.
Put the whole changed project into outputs/shop/, with the same file names.`

/** Ways to call the old interface. `n` is the number of the module. */
const STYLES: readonly ((n: number) => string)[] = [
  (n) => `from mail.legacy import legacy_send


def run(name):
    legacy_send(name, "Report ${n}", f"Dear {name}, report ${n} is ready.")
`,
  (n) => `from mail.legacy import legacy_send as send


def run(name):
    send(subject="Invoice ${n}", to=name, body="\\n".join(["Please pay.", str(${n * 10})]), urgent=True)
`,
  (n) => `from mail import legacy

COPIES = ["audit@shop.example", "boss${n}@shop.example"]


def run(name):
    for part in range(${(n % 3) + 1}):
        legacy.legacy_send(name, f"Part {part}", "text", COPIES)
`,
  (n) => `from functools import partial

from mail.legacy import legacy_send

notify = partial(legacy_send, subject="Notice ${n}", cc=["team${n}@shop.example"])


def run(name):
    notify(name, body=f"{name} has {${n} * 2} notices", urgent=len(name) > 3)
`,
  (n) => `import mail.legacy


class Sender:
    send = staticmethod(mail.legacy.legacy_send)


def run(name):
    Sender.send(name.upper(), "Hello ${n}", "body", None, ${n % 2 === 0 ? 'True' : 'False'})
`,
  (n) => `from mail.legacy import legacy_send


def run(name, send=legacy_send):
    rows = [(name, "A${n}", "first"), (name, "B${n}", "second")]
    for row in rows:
        send(*row)
    send(**{"to": name, "subject": "C${n}", "body": "third", "cc": [name]})
`,
]

export const jobName = (n: number) => `jobs/job_${String(n).padStart(2, '0')}.py`

/** The project before the change. */
export function shop(): Map<string, string> {
  const jobs = Array.from({ length: MODULES }, (_, i) => [jobName(i + 1), STYLES[i % STYLES.length]!(i + 1)] as const)
  return new Map([
    ['mail/__init__.py', ''],
    ['mail/outbox.py', 'OUTBOX = []\n'],
    ['mail/legacy.py', LEGACY],
    ['mail/mailer.py', MAILER],
    ['jobs/__init__.py', ''],
    ...jobs,
  ])
}

/** Runs each job of both projects for two names, and compares what they send. */
const COMPARE = `
import importlib, sys

def sent(root):
    for name in [name for name in sys.modules if name.split(".")[0] in ("mail", "jobs")]:
        del sys.modules[name]
    sys.path.insert(0, root)
    importlib.invalidate_caches()
    outbox = importlib.import_module("mail.outbox").OUTBOX
    result = {}
    for n in range(1, ${MODULES} + 1):
        job = importlib.import_module(f"jobs.job_{n:02}")
        for name in ("ada", "grace"):
            del outbox[:]
            job.run(name)
            result[n, name] = [(to, subject, body, list(cc)) for to, subject, body, cc in outbox]
    sys.path.remove(root)
    return result

before, after = sent("before"), sent("after")
wrong = [key for key in before if before[key] != after[key]]
sys.exit(f"other mail than before: {wrong}" if wrong else 0)
`

export const refactoring: Task = {
  name: 'refactoring',
  about: `replacement of an interface in ${MODULES} modules`,
  needsServices: false,
  request: () => ({
    instruction: INSTRUCTION,
    tools: ['code_execution', 'file_read', 'file_write'],
    files: [...shop()].map(([name, content]) => ({ name: `shop/${name}`, content })),
  }),
  grade({ files }) {
    const changed = below('shop', files)
    const missing = [...shop().keys()].find((name) => name !== 'mail/legacy.py' && !changed.has(name))
    if (missing !== undefined && !missing.endsWith('__init__.py')) return `outputs/shop/${missing} is missing`
    const old = [...changed].find(([name, content]) => /legacy/i.test(name) || /legacy/i.test(content))
    if (old) return `${old[0]} still has the old interface`
    const around = [...changed].find(([name, content]) => /^jobs\/job_/.test(name) && !content.includes('Message('))
    if (around) return `${around[0]} builds no Message`
    if (changed.get('mail/mailer.py') !== MAILER) return 'mail/mailer.py was changed'
    const both = new Map([['compare.py', COMPARE]])
    for (const [name, content] of shop()) both.set(`before/${name}`, content)
    for (const [name, content] of changed) both.set(`after/${name}`, content)
    return runPython(both, ['compare.py'])
  },
}
