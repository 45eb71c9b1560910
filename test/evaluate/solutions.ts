/** A scripted model that solves each task of the evaluation through its tools. */
import type { ChatRequest } from '../fake-provider.ts'
import type { Reply } from '../support/model-provider/script.ts'

/** Next reply to a request of the task. `turn`: number of the model's earlier turns. `result`: the last tool result. */
type Solution = (turn: number, body: ChatRequest, result: string) => Reply

const code = (python: string): Reply => ({
  toolCalls: [{ name: 'code_execution', args: { language: 'python', code: python } }],
})

const ANALYZE = `
import csv, json
countries = {row["id"]: row["country"] for row in csv.DictReader(open("customers.csv"))}
orders = {row["id"]: row for row in csv.DictReader(open("orders.csv"))}
sums = {}
for row in orders.values():
    date = row["date"] if "-" in row["date"] else "-".join(reversed(row["date"].split("/")))
    if row["status"] != "cancelled" and "2025-04-01" <= date <= "2025-06-30":
        revenue, count = sums.get(countries[row["customer"]], (0, 0))
        sums[countries[row["customer"]]] = revenue + int(row["quantity"]) * float(row["unit_price"]), count + 1
country = max(sums, key=lambda name: sums[name][0])
print(json.dumps({"country": country, "revenue": round(sums[country][0], 2), "orders": sums[country][1]}))
`

const REPAIR = `
import pathlib, shutil, subprocess
def edit(name, *changes):
    path = pathlib.Path("project", name)
    text = path.read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path.write_text(text)
edit("interval.py",
     ("self.start <= other.end and other.start <= self.end", "self.start < other.end and other.start < self.end"),
     ("Interval(merged[-1].start, interval.end)", "Interval(merged[-1].start, max(merged[-1].end, interval.end))"))
edit("calendar_of_room.py", ("bookings=[]", "bookings=()"), ("self.bookings = bookings", "self.bookings = list(bookings)"))
edit("finder.py", ("busy.start - at > shortest", "busy.start - at >= shortest"), ("at = busy.end", "at = max(at, busy.end)"))
subprocess.run(["python3", "-m", "unittest", "discover", "-t", ".", "tests"], cwd="project", check=True)
shutil.copytree("project", "outputs/project", ignore=shutil.ignore_patterns("__pycache__"))
print("All tests pass.")
`

const readSite = (site: string) => `
import json, os, re, urllib.parse, urllib.request
for name in ("no_proxy", "NO_PROXY"):
    os.environ.pop(name, None)
def read(path):
    return urllib.request.urlopen(urllib.parse.urljoin("${site}", path)).read().decode()
found, page = [], "/pumps"
while page:
    text = read(page)
    for path in re.findall(r'<li><a href="([^"]+)"', text):
        product = read(path)
        price, city = re.search(r"Price: (\\d+) EUR. Warehouse: (\\w+)", product).groups()
        if int(price) < 600 and city == "Rotterdam":
            flow = float(re.search(r"<td>([\\d.]+)", read(path + "/data-sheet")).group(1))
            found.append((flow, path.split("/")[-1]))
    following = re.search(r'rel="next" href="([^"]+)"', text)
    page = following and following.group(1)
flow, code = max(found)
print(json.dumps({"code": code, "litersPerMinute": round(flow * 1000 / 60)}))
`

const REFACTOR = `
import pathlib, re, shutil
HELPER = """from mail.mailer import Mailer, Message


def send_mail(to, subject, body, cc=None, urgent=False):
    Mailer(priority="high" if urgent else "normal").deliver(Message(to, subject, body, cc or []))
"""
shutil.copytree("shop", "outputs/shop", ignore=shutil.ignore_patterns("__pycache__"))
for path in pathlib.Path("outputs/shop/jobs").glob("job_*.py"):
    text = path.read_text()
    alias = re.search(r"legacy_send as (\\w+)", text)
    helper = HELPER + (f"\\n\\n{alias.group(1)} = send_mail\\n" if alias else "")
    text = re.sub(r"(from mail.legacy import.*|from mail import legacy|import mail.legacy)\\n", lambda _: helper, text)
    text = re.sub(r"(mail\\.)?(legacy\\.)?legacy_send", "send_mail", text)
    path.write_text(text)
pathlib.Path("outputs/shop/mail/legacy.py").unlink()
print("Done.")
`

/** Calls a tool by its name, or by `call_tool` if the model was given a search for tools. */
function mcpCall({ tools = [] }: ChatRequest, name: string, args: object): Reply {
  const isDirect = tools.some((tool) => tool.function.name === name)
  return { toolCalls: [isDirect ? { name, args } : { name: 'call_tool', args: { name, args } }] }
}

const TOOL_STEPS: readonly Solution[] = [
  (_, body) => mcpCall(body, 'billing__invoice_list', {}),
  (_, body) => mcpCall(body, 'crm__customer_get', { id: 'K-9' }),
  (_, body) => mcpCall(body, 'crm__contact_get', { id: 'P-91' }),
  (_, body) => mcpCall(body, 'operations__warehouse_get', { id: 'W-9' }),
  (_, { messages }) => {
    const said = messages.map(({ content }) => String(content)).join('\n')
    const found = (pattern: RegExp) => pattern.exec(said.replaceAll('\\"', '"'))?.[1]
    return { text: JSON.stringify({ phone: found(/"phone":"([^"]+)"/), city: found(/"city":"([^"]+)"/) }) }
  },
]

/** Runs code, then answers with what it printed. */
const printed =
  (python: string): Solution =>
  (turn, _, result) =>
    turn === 0 ? code(python) : { text: result.trim() }

/** Solutions by a phrase of the task's instruction. */
export const SOLUTIONS: Readonly<Record<string, Solution>> = {
  'come from a shop': printed(ANALYZE),
  'Some of its tests fail': printed(REPAIR),
  'lists pumps': (turn, body, result) => {
    const [, site = ''] = /The catalog at (\S+)/.exec(JSON.stringify(body.messages)) ?? []
    return printed(readSite(site))(turn, body, result)
  },
  'send mail with mail.legacy': printed(REFACTOR),
  'open invoice with the earliest due date': (turn, body, result) => TOOL_STEPS[turn]!(turn, body, result),
}
