/** Streams to programs and listeners inside a sandbox, and an interaction's further sandboxes. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { buffer, text } from 'node:stream/consumers'
import { afterAll, beforeAll, test } from 'vitest'
import type { Sandbox } from '../../src/sandbox/port.ts'
import { LIMITS, never, openWorld, run, until, type World } from './fixture.ts'

let world: World
let sandbox: Sandbox
beforeAll(async () => {
  world = await openWorld()
  sandbox = await world.sandbox()
})
afterAll(() => world.close())

test('a program’s input and output arrive complete and in order', async () => {
  const program = sandbox.spawn({ argv: ['cat'], pipes: 'stdio' })
  const sent = randomBytes(5 * 1024 * 1024 + 17)
  const received = buffer(program.stream)
  program.stream.end(sent)
  assert.equal(
    createHash('sha256')
      .update(await received)
      .digest('hex'),
    createHash('sha256').update(sent).digest('hex'),
  )
  assert.deepEqual(await program.exited, { kind: 'exit', code: 0 })
})

test('the stream can be on descriptors 3 and 4, with its own environment and directory', async () => {
  const program = sandbox.spawn({
    argv: ['bash', '-c', 'read -r -u 3 line; echo "$line $GREETING $PWD" >&4'],
    env: { GREETING: 'hello' },
    cwd: '/tmp',
    pipes: 'fd34',
  })
  program.stream.write('said\n')
  assert.equal(await text(program.stream), 'said hello /tmp\n')
  assert.deepEqual(await program.exited, { kind: 'exit', code: 0 })
})

test('a program’s stderr and exit code are reported', async () => {
  let heard = ''
  const program = sandbox.spawn({ argv: ['bash', '-c', 'echo trouble >&2; exit 3'], pipes: 'stdio' }, (said) => {
    heard += said
  })
  program.stream.resume()
  assert.deepEqual(await program.exited, { kind: 'exit', code: 3 })
  assert.equal(heard, 'trouble\n')
})

test('a program that does not exist ends with exit code 127', async () => {
  const program = sandbox.spawn({ argv: ['no-such-program'], pipes: 'stdio' })
  program.stream.resume()
  assert.deepEqual(await program.exited, { kind: 'exit', code: 127 })
})

test('killing a program ends all its descendants, even one in another session', async () => {
  const program = sandbox.spawn({
    argv: ['bash', '-c', 'setsid sleep 4001 & (trap "" TERM; sleep 4002) & echo up; wait'],
    pipes: 'stdio',
  })
  await new Promise((resolve) => program.stream.once('data', resolve))
  program.stream.resume()
  program.kill()
  assert.deepEqual(await program.exited, { kind: 'cancelled' })
  await until(async () => {
    const { output } = await run(
      sandbox,
      'bash',
      'cat /proc/[0-9]*/cmdline | tr "\\0" " " | grep -c "sleep 400[12]" || true',
    )
    return output.trim() === '0'
  })
})

test('a program that leaves a daemon behind ends all the same', async () => {
  const program = sandbox.spawn({ argv: ['bash', '-c', 'sleep 4003 & echo done'], pipes: 'stdio' })
  assert.equal(await text(program.stream), 'done\n')
  assert.deepEqual(await program.exited, { kind: 'exit', code: 0 })
})

test('a program that does not read blocks its writer, and a reader that does not read blocks the program', async () => {
  const deaf = sandbox.spawn({ argv: ['sleep', '1000'], pipes: 'stdio' })
  let taken = 0
  for (let i = 0; i < 64; i++) deaf.stream.write(Buffer.alloc(256 * 1024), () => taken++)
  const loud = sandbox.spawn(
    { argv: ['bash', '-c', 'yes | head -c 50000000; echo >&2 written'], pipes: 'stdio' },
    () => {
      throw new Error('it wrote 50 MB to a reader that read nothing')
    },
  )
  assert.equal((await run(sandbox, 'python', '40 + 2')).output, '42\n')
  assert.ok(taken < 10, `${taken} chunks were taken by a program that reads nothing`)
  for (const program of [deaf, loud]) {
    program.kill()
    program.stream.on('error', () => {}).resume()
    await program.exited
  }
})

test('connections made inside arrive outside, many at once, each with its own bytes and its own end', async () => {
  const listener = await sandbox.listen(3128, async (connection: Duplex) => {
    const heard = await text(connection)
    connection.end(`heard ${heard}`)
  })
  const { output } = await run(
    sandbox,
    'python',
    `import socket
connections = [socket.create_connection(('127.0.0.1', 3128)) for _ in range(20)]
for i, connection in enumerate(connections):
    connection.sendall(b'x' * 100_000 + str(i).encode())
    connection.shutdown(socket.SHUT_WR)
def all_of(connection):
    parts = []
    while part := connection.recv(65536): parts.append(part)
    return b''.join(parts)
print(all(all_of(connection) == b'heard ' + b'x' * 100_000 + str(i).encode() for i, connection in enumerate(connections)))`,
  )
  assert.equal(output, 'True\n')
  await listener.close()
  const refused = await run(sandbox, 'python', `socket.create_connection(('127.0.0.1', 3128))`)
  assert.match(refused.output, /ConnectionRefusedError/)
})

test('variables from outside are set in sessions and programs that start later, and in no others', async () => {
  const other = await world.sandbox()
  await run(other, 'bash', 'true')
  await other.setEnvironment({ PLACE: 'http://127.0.0.1:3128', HOME: '/tmp' })
  assert.equal((await run(other, 'bash', 'echo "$PLACE"')).output, '\n')
  assert.equal((await run(other, 'python', `import os; os.environ['PLACE']`)).output, "'http://127.0.0.1:3128'\n")
  assert.equal((await run(other, 'javascript', 'process.env.HOME')).output.trim().replaceAll("'", ''), '/tmp')
  const program = other.spawn({ argv: ['sh', '-c', 'echo "$PLACE"'], pipes: 'stdio' })
  assert.equal(await text(program.stream), 'http://127.0.0.1:3128\n')
  assert.deepEqual(await program.exited, { kind: 'exit', code: 0 })
  await other.destroy()
})

test('a port that is taken inside is an error', async () => {
  await run(sandbox, 'python', `import socket; held = socket.create_server(('127.0.0.1', 4000))`)
  await assert.rejects(
    sandbox.listen(4000, () => {}),
    /Port 4000 .* in use/,
  )
})

test('a listener ends with its server, so that the next server can use the port', async () => {
  const second = await world.connect()
  const there = await second.open({ interactionId: 'int_1', epoch: 1, lifetimeMs: 60_000, limits: LIMITS }, never)
  await there.listen(5000, () => {})
  await second.close()
  let greeted = false
  await until(async () => {
    try {
      const listener = await sandbox.listen(5000, (connection) => {
        greeted = true
        connection.end('hello')
      })
      const { output } = await run(sandbox, 'python', `socket.create_connection(('127.0.0.1', 5000)).recv(5)`)
      assert.equal(output, "b'hello'\n")
      await listener.close()
      return true
    } catch (error) {
      assert.match(String(error), /in use/)
      return false
    }
  })
  assert.ok(greeted)
})

test('an interaction may have further sandboxes by name, and all end with it', async () => {
  const open = (name: string) =>
    world.sandboxes.open({ interactionId: 'int_named', name, epoch: 1, lifetimeMs: 60_000, limits: LIMITS }, never)
  const [main, beside] = [await open('main'), await open('beside')]
  await run(main, 'bash', 'echo secret > /workspace/mine')
  assert.match((await run(beside, 'bash', 'ls /workspace/mine')).output, /No such file/)
  assert.equal((await open('beside')).fresh, false)
  await beside.destroy()
  assert.equal((await run(main, 'bash', 'cat mine')).output, 'secret\n')
  await open('beside')
  await world.sandboxes.destroy('int_named')
  assert.ok(!(await world.sandboxes.living()).includes('int_named'))
  assert.equal((await run(main, 'bash', 'true')).end.kind, 'lost')
})

test('a program and a connection end when their sandbox does', async () => {
  const other = await world.sandbox()
  const program = other.spawn({ argv: ['sleep', '1000'], pipes: 'stdio' })
  program.stream.on('error', () => {})
  let connection: Duplex | undefined
  await other.listen(3128, (made) => {
    connection = made.on('error', () => {})
    made.resume()
  })
  await run(other, 'python', `import socket; held = socket.create_connection(('127.0.0.1', 3128))`)
  await until(() => connection !== undefined)
  await other.destroy()
  assert.deepEqual(await program.exited, { kind: 'lost' })
  await until(() => connection!.destroyed)
})
