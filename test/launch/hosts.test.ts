import { describe, expect, it } from 'vitest';

import { parseHostfile, parseHostList, place } from '../../lib/launch/hosts.js';

describe('hostfiles', () => {
  it('take hosts with and without slots, comments and blank lines', () => {
    const text =
      '# two\nnode1\n\nnode2:4  # fast\nnode3 slots=2\n10.0.0.7 slots = 3\n[fe80::1]:2\n';
    expect(parseHostfile(text)).toEqual([
      { name: 'node1' },
      { name: 'node2', slots: 4 },
      { name: 'node3', slots: 2 },
      { name: '10.0.0.7', slots: 3 },
      { name: '[fe80::1]', slots: 2 },
    ]);
  });

  it.each([
    ['node1 max-slots = 4 slots = 4', 'node1=4'],
    ['node1 max_slots=4', 'node1'],
    ['head slots=0\nnode1:2', 'head=0 node1=2'],
    ['head:00\nnode1:2', 'head=0 node1=2'],
    ['2001:db8::1 slots=4\n::1', '[2001:db8::1]=4 [::1]'],
    ['node1:2 node2:3\tnode3', 'node1=2 node2=3 node3'],
  ])('take %j, as mpirun does', (text, expected) => {
    const hosts = parseHostfile(text).map(({ name, slots }) =>
      [name, slots ?? []].flat().join('='),
    );
    expect(hosts.join(' ')).toBe(expected);
  });

  it('ask where slots may be a port of ssh', () => {
    for (const text of ['a:22\nb:22', 'a\nb:1025']) {
      expect(() => parseHostfile(text, true)).toThrow(/ssh -p (22|1025)/);
      expect(parseHostfile(text)).toHaveLength(2);
    }
    expect(() => parseHostList('a:22,b:22', true)).toThrow(/ssh -p 22/);
    expect(parseHostfile('a slots=22\nb:1024', true)).toHaveLength(2);
  });

  it('add the slots of a host that is named again', () => {
    expect(parseHostfile('a:2\nb\na slots=1\nb\nc:2\nc\n')).toEqual([
      { name: 'a', slots: 3 },
      { name: 'b' },
      // A line without a number is one slot.
      { name: 'c', slots: 3 },
    ]);
  });

  it.each([
    ['a\nb 4\n', /line 2: .*got 'b 4'/],
    ['a slots=4 max_slots=2', /line 1/],
    ['a slots=4 slots=2', /line 1/],
    ['slots=4', /line 1/],
    ['a slots=x', /line 1/],
    ['# nothing\n', /one host\b.*none/],
    // Options to ssh and mpirun, and what no host is called.
    ['a\n-FTMP/evil:2\n', /line 2: .*got '-FTMP\/evil'/],
    ['-oProxyCommand', /line 1: .*'-'/],
    ['user@-x', /line 1/],
    ['-l@a', /line 1/],
    ['a\n\nb/c', /line 3: .*got 'b\/c'/],
    ["a'b", /line 1/],
    ['a,b', /line 1/],
    ['a\0b', /line 1: .*got 'a\\u0000b'/],
    ['a$(b)', /line 1/],
    ['[fe80::1', /line 1/],
    ['[-x]', /line 1/],
  ])('%j is refused', (text, message) => {
    expect(() => parseHostfile(text)).toThrow(message);
  });

  it('take users and what addresses and names are made of', () => {
    const names = ['me@node-1.example.org', 'node_2', '10.0.0.7', '[fe80::1%eth0]', 'A'];
    expect(parseHostfile(names.join('\n')).map(({ name }) => name)).toEqual(names);
  });

  it('on the command line are counted', () => {
    expect(parseHostList('a:2,b')).toEqual([{ name: 'a', slots: 2 }, { name: 'b' }]);
    expect(() => parseHostList('a:2,-x:1')).toThrow(/^host 2: .*got '-x'/);
  });
});

describe('placement', () => {
  const placed = (workers: number, servers: number, ...slots: (number | undefined)[]) =>
    place(
      { workers, servers },
      slots.map((each, host) => {
        const name = String.fromCharCode('a'.charCodeAt(0) + host);
        return each === undefined ? { name } : { name, slots: each };
      }),
    ).join('');

  it.each([
    ['fills hosts in order', 3, 0, [2, 2], 'aab'],
    ['leaves out a host of no slots', 2, 1, [0, 3], 'bbb'],
    ['deals servers over the hosts', 4, 2, [3, 3], 'aabbab'],
    ['deals servers to a host that has room for nothing else then', 3, 2, [1, 4], 'bbbab'],
    ['parts evenly without slots', 4, 2, [undefined, undefined], 'aabbab'],
    ['gives a host without slots one where others have some', 2, 0, [undefined, 3], 'ab'],
    ['begins with the last host for servers', 2, 1, [2, 2], 'aab'],
  ] as const)('%s', (_, workers, servers, slots, expected) => {
    expect(placed(workers, servers, ...slots)).toBe(expected);
  });

  it('places every process once, whatever the numbers', () => {
    for (const workers of [1, 2, 3, 7]) {
      for (const servers of [0, 1, 2, 7]) {
        for (const hosts of [1, 2, 3, 5]) {
          const names = Array.from({ length: hosts }, (_, host) => ({ name: String(host) }));
          const all = place({ workers, servers }, names);
          const counts = names.map(({ name }) => all.filter((other) => other === name).length);
          expect(all).toHaveLength(workers + servers);
          expect(Math.max(...counts) - Math.min(...counts)).toBeLessThan(2);
          // Workers of a host are neighbours.
          expect(all.slice(0, workers)).toEqual(all.slice(0, workers).sort());
        }
      }
    }
  });

  it('says when there is too little room', () => {
    expect(() => placed(4, 2, 2, 3)).toThrow(/\b6 slots .*\b4 workers .*\b2 servers, got 5$/);
  });
});
