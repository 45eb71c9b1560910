import { describe, expect, test } from 'vitest'
import { createSseParser } from '../../src/models/sse.ts'

function parse(chunks: readonly (string | Buffer)[], maxBytes = 1024): { data: string[]; fits: boolean } {
  const data: string[] = []
  const parser = createSseParser((event) => data.push(event), maxBytes)
  const fits = chunks.map((chunk) => parser.push(Buffer.from(chunk))).every(Boolean) && parser.end()
  return { data, fits }
}

describe('the parser of server-sent events', () => {
  test.each([
    ['one event', 'data: a\n\n', ['a']],
    ['two events', 'data: a\n\ndata: b\n\n', ['a', 'b']],
    ['CRLF line ends', 'data: a\r\n\r\ndata: b\r\n\r\n', ['a', 'b']],
    ['no space behind the colon', 'data:a\n\n', ['a']],
    ['only one space taken away', 'data:  a\n\n', [' a']],
    ['several data lines as one event', 'data: a\ndata: b\n\n', ['a\nb']],
    ['a data field without a colon', 'data\n\n', ['']],
    ['comments and keep-alives', ': hello\n\n:\n\ndata: a\n: more\n\n', ['a']],
    ['other fields', 'event: x\nid: 7\nretry: 3\ndata: a\n\n', ['a']],
    ['a field whose name only begins like data', 'database: x\ndat: y\ndata: a\n\n', ['a']],
    ['a byte order mark at the start', '\ufeffdata: a\n\n', ['a']],
    ['a last event whose empty line is missing', 'data: a\n\ndata: b', ['a', 'b']],
    ['empty lines without data', '\n\n\ndata: a\n\n\n\n', ['a']],
  ])('reads %s', (_, stream, events) => {
    expect(parse([stream])).toEqual({ data: events, fits: true })
  })

  test('reads the same events wherever the stream is cut', () => {
    const stream = Buffer.from(
      '\ufeff: hi\r\ndata: {"text":"né 👩‍🚀 ok"}\r\n\r\ndata: 漢字\ndata: 🙂\n\ndata: [DONE]\n\n',
    )
    const whole = parse([stream]).data
    expect(whole).toEqual(['{"text":"né 👩‍🚀 ok"}', '漢字\n🙂', '[DONE]'])
    for (let at = 0; at <= stream.length; at++) {
      expect(parse([stream.subarray(0, at), stream.subarray(at)]).data, `cut at ${at}`).toEqual(whole)
    }
    expect(parse(Array.from(stream, (byte) => Buffer.from([byte]))).data, 'byte by byte').toEqual(whole)
  })

  test('gives up on a line that does not end', () => {
    expect(parse(['data: '.padEnd(80, 'x'), 'x'.repeat(80)], 100).fits).toBe(false)
    expect(parse(['data: '.padEnd(80, 'x'), '\n\n', 'data: '.padEnd(80, 'x'), '\n\n'], 100).fits).toBe(true)
  })

  test('gives up on an event of endless lines', () => {
    expect(
      parse(
        Array.from({ length: 20 }, () => 'data: 0123456789\n'),
        100,
      ).fits,
    ).toBe(false)
  })
})
