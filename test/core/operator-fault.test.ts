import { describe, expect, it } from 'vitest';
import { fileFault, isPortInUse, listenFault, OperatorFault } from '../../src/core/operator-fault.ts';

function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: something, call 'x'`), { code });
}

describe('listenFault', () => {
  it.each([
    ['EADDRINUSE', 25, /^mx\.listen: port 25 of 0\.0\.0\.0 is in use .* set mx\.listen to another port$/],
    ['EACCES', 25, /^mx\.listen: no permission to listen on port 25 .*CAP_NET_BIND_SERVICE/],
    ['EACCES', 2525, /^mx\.listen: no permission to listen on port 2525 .* Set mx\.listen to another port$/],
    ['EADDRNOTAVAIL', 25, /^mx\.listen: this machine has no address 0\.0\.0\.0\. Set mx\.listen to /],
    ['ENOTFOUND', 25, /^mx\.listen: the host name 0\.0\.0\.0 cannot be resolved/],
  ])('names the setting and the remedy for %s on port %i', (code, port, message) => {
    const fault = listenFault('mx.listen', { host: '0.0.0.0', port }, systemError(code));
    expect(fault).toBeInstanceOf(OperatorFault);
    expect(fault).toMatchObject({ message: expect.stringMatching(message) });
    expect(isPortInUse(fault)).toBe(code === 'EADDRINUSE');
  });

  it('returns errors with an unknown cause unchanged', () => {
    const error = systemError('EWHATEVER');
    expect(listenFault('mx.listen', { host: '::', port: 25 }, error)).toBe(error);
  });
});

it.each([
  ['ENOENT', 'a.key: /x.pem does not exist. Create the file or correct the path, or do without'],
  [
    'EACCES',
    'a.key: /x.pem cannot be read: permission denied. Make it readable for the user that runs postrider, or do without',
  ],
  ['EISDIR', 'a.key: /x.pem is a directory. Name the file itself, or do without'],
])('names the file and its setting (%s)', (code, message) => {
  expect(fileFault('a.key', '/x.pem', systemError(code), 'do without').message).toBe(message);
});

it('names the file alone when no setting has it', () => {
  expect(fileFault(null, 'x.csv', systemError('ENOENT')).message).toBe(
    'x.csv does not exist. Create the file or correct the path',
  );
});
