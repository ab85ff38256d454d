import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { eximFault } from './exim.ts';

/**
 * External programs that an end-to-end test needs. On a developer's machine a test whose programs are missing is
 * skipped and states the reason; in CI (`CI` is set) a missing program is an error, so that no test is lost.
 *
 *     const required = requirePrograms('knot', 'postfix');
 *     describe.skipIf(required.missing)(`delivery to Postfix${required.reason}`, () => { … });
 */
export type Program =
  | 'knot'
  | 'kdig'
  | 'dig'
  | 'postfix'
  | 'exim'
  | 'unbound'
  | 'dante'
  | 'dkimpy'
  | 'pyspf'
  | 'chromium'
  | 'swaks'
  | 'pebble'
  | 'curl'
  | 'jq'
  | 'java'
  | 'php'
  | 'phpmailer'
  | 'ruby'
  | 'actionmailer'
  | 'go'
  | 'django'
  | 'python3'
  | 'yaml'
  | 'terminal'
  | 'spamassassin'
  | 'spamd'
  | 'rspamd'
  | 'systemd-notify'
  | 'systemd-analyze'
  | 'systemd-nspawn'
  | 'mmdebstrap'
  | 'podman'
  | 'dpkg-deb'
  | 'lintian'
  | 'compiler'
  | 'root'
  | 'haproxy'
  | 'caddy'
  | 'socat'
  | 'rsync'
  | 'sqlite3'
  | 'openssl'
  | 'litestream'
  | 'redocly'
  | 'provider-sdks'
  | 'docs-site'
  | 'prometheus'
  | 'fish'
  | 'zsh';

export interface Requirements {
  missing: boolean;
  /** ` [skipped: …]` for the title of the test, '' when nothing is missing. */
  reason: string;
}

/** Debian's Python finds Debian's modules; another Python earlier in PATH may not. */
export const PYTHON = '/usr/bin/python3';

/** Debian's PHPMailer. */
export const PHPMAILER = '/usr/share/php/libphp-phpmailer/autoload.php';

/** Libraries that are not part of the installation. */
const TOOLS = join(import.meta.dirname, '../../.ci/tools/node_modules');

/** The generator of the site of docs/, and what builds it. */
export const DOCS_SITE = join(import.meta.dirname, '../../docs/site');

export const LITESTREAM = join(TOOLS, `@flydotio/litestream-linux-${process.arch}/litestream`);

const ADMIN_FOLDERS = ['/usr/local/sbin', '/usr/sbin', '/sbin'];

/** Throws in CI when a program is missing. */
export function requirePrograms(...programs: Program[]): Requirements {
  return requirementsOf(programs.flatMap((program) => FAULTS[program]() ?? []));
}

/** `requirePrograms` for faults that the caller found itself. */
export function requirementsOf(faults: string[]): Requirements {
  if (faults.length === 0) return { missing: false, reason: '' };
  const why = faults.join('; ');
  if (process.env['CI']) throw new Error(`this test must run in CI, but ${why}`);
  console.log(`skipped: ${why}`);
  return { missing: true, reason: ` [skipped: ${why}]` };
}

/** The path of a program in PATH or in one of the administrators' folders; null when there is none. */
export function findProgram(name: string): string | null {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), ...ADMIN_FOLDERS];
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file)) ?? null;
}

/** Debian's Chromium, or Chrome. */
export function findBrowser(): string | null {
  return findProgram('chromium-headless-shell') ?? findProgram('chromium') ?? findProgram('google-chrome');
}

const FAULTS: Record<Program, () => string | null> = {
  knot: () => findPrograms('Knot DNS (package knot)', ['knotd', 'knotc']),
  kdig: () => findPrograms('kdig (package knot-dnsutils)', ['kdig']),
  dig: () => findPrograms('dig (package bind9-dnsutils)', ['dig']),
  postfix: () =>
    findPrograms('Postfix (package postfix)', ['postfix', 'postconf']) ??
    (process.getuid?.() === 0 ? null : 'Postfix can be started by root only'),
  exim: eximFault,
  unbound: () =>
    findPrograms('Unbound (package unbound)', ['unbound']) ??
    findPrograms('kdig and keymgr (packages knot-dnsutils, knot)', ['kdig', 'keymgr']),
  dante: () => findPrograms('Dante (package dante-server)', ['danted']),
  dkimpy: () => importModules('dkimpy (package python3-dkim)', ['dkim', 'dns']),
  chromium: () =>
    findBrowser() === null ? 'Chromium (package chromium-headless-shell or chromium) is not installed' : null,
  pebble: () => findPrograms('Pebble (package pebble)', ['pebble']),
  swaks: () => findPrograms('swaks (package swaks)', ['swaks']),
  curl: () => findPrograms('curl', ['curl']),
  jq: () => findPrograms('jq', ['jq']),
  java: () => findPrograms('Java (package default-jdk-headless)', ['java', 'javac']),
  php: () =>
    succeeds(
      'PHP with curl (packages php-cli, php-curl)',
      'php',
      '-r',
      'exit(extension_loaded("curl") ? 0 : 1);',
    ),
  phpmailer: () => succeeds('PHPMailer (package libphp-phpmailer)', 'php', '-r', `require '${PHPMAILER}';`),
  ruby: () => findPrograms('Ruby (package ruby)', ['ruby']),
  actionmailer: () =>
    succeeds('Action Mailer (package ruby-actionmailer)', 'ruby', '-e', 'require "action_mailer"'),
  go: () => findPrograms('Go (package golang-go)', ['go']),
  django: () =>
    importModules('Django (package python3-django)', ['django']) ??
    findPrograms('django-admin (package python3-django)', ['django-admin']),
  yaml: () => importModules('PyYAML (package python3-yaml)', ['yaml']),
  python3: () => findPrograms('Python', ['python3']),
  terminal: () => findPrograms('script (package bsdutils)', ['script']) ?? noTerminal(),
  spamassassin: () => findPrograms('SpamAssassin (package spamassassin)', ['spamassassin']),
  spamd: () => findPrograms('spamd (package spamd)', ['spamd']),
  rspamd: () => findPrograms('Rspamd (package rspamd)', ['rspamd']),
  'systemd-notify': () => findPrograms('systemd-notify (package systemd)', ['systemd-notify']),
  'systemd-analyze': () => findPrograms('systemd-analyze (package systemd)', ['systemd-analyze']),
  'systemd-nspawn': () =>
    findPrograms('systemd-nspawn (package systemd-container)', ['systemd-nspawn', 'nsenter']),
  mmdebstrap: () => findPrograms('mmdebstrap (package mmdebstrap)', ['mmdebstrap']),
  podman: () =>
    findPrograms('Podman (packages podman, crun, runc)', ['podman', 'crun', 'runc', 'conmon']) ??
    (process.getuid?.() === 0 ? null : 'Podman of the tests runs as root only'),
  'dpkg-deb': () => findPrograms('dpkg-deb (package dpkg)', ['dpkg-deb']),
  lintian: () => findPrograms('lintian (package lintian)', ['lintian']),
  compiler: () => findPrograms('a C++ compiler (packages g++, make, python3)', ['g++', 'make', 'python3']),
  haproxy: () => findPrograms('HAProxy (package haproxy)', ['haproxy']),
  caddy: () => findPrograms('Caddy (package caddy)', ['caddy']),
  socat: () => findPrograms('socat', ['socat']),
  rsync: () => findPrograms('rsync', ['rsync']),
  sqlite3: () => findPrograms('sqlite3', ['sqlite3']),
  openssl: () => findPrograms('openssl', ['openssl']),
  litestream: () => findFile('Litestream (cd .ci/tools && npm ci)', LITESTREAM),
  redocly: () => findFile('Redocly (cd .ci/tools && npm ci)', join(TOOLS, '@redocly')),
  'provider-sdks': () =>
    findFile('SDKs of other providers (cd .ci/tools && npm ci)', join(TOOLS, '@aws-sdk')),
  'docs-site': () =>
    findFile('VitePress (cd docs/site && npm ci)', join(DOCS_SITE, 'node_modules/vitepress')),
  prometheus: () => findPrograms('Prometheus (package prometheus)', ['prometheus', 'promtool']),
  fish: () => findPrograms('fish', ['fish']),
  zsh: () => findPrograms('zsh', ['zsh']),
  root: () => (process.getuid?.() === 0 ? null : 'it needs root'),
  pyspf: () => importModules('pyspf (packages python3-spf, python3-dnspython)', ['spf', 'dns']),
};

function findPrograms(title: string, names: string[]): string | null {
  return names.every((name) => findProgram(name) !== null) ? null : `${title} is not installed`;
}

function findFile(title: string, path: string): string | null {
  return existsSync(path) ? null : `${title} is not installed`;
}

/** In a container or a chroot without /dev/pts, programs have no pseudo terminal. */
function noTerminal(): string | null {
  try {
    execFileSync('script', ['-qec', 'true', '/dev/null'], { stdio: 'ignore' });
    return null;
  } catch {
    return 'no pseudo terminal can be opened (/dev/pts is not mounted)';
  }
}

const importModules = (title: string, modules: string[]) =>
  succeeds(title, PYTHON, '-c', `import ${modules.join(', ')}`);

function succeeds(title: string, program: string, ...args: string[]): string | null {
  try {
    execFileSync(program, args, { stdio: 'ignore' });
    return null;
  } catch {
    // The program itself or its library is missing.
    return `${title} is not installed`;
  }
}
