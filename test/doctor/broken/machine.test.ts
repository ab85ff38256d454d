import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { DoctorSetup } from '../setup.ts';
import { describeBroken } from './rows.ts';

const notRoot = process.geteuid?.() === 0 ? false : 'needs root';
const noMemoryDisk = existsSync('/dev/shm') ? false : 'needs /dev/shm';

/** A file system in memory as the data directory. */
function mountSmall(setup: DoctorSetup, options: string): void {
  const dir = mkdtempSync(join(tmpdir(), 'postrider-doctor-mount-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', dir]);
  onTestFinished(() => {
    execFileSync('umount', [dir]);
    rmSync(dir, { recursive: true });
  });
  setup.config.data.dir = dir;
}

describeBroken(
  'a broken machine',
  ['runtime', 'data-directory', 'disk', 'clock'],
  [
    {
      title: 'Node.js past its end of life',
      check: 'runtime',
      break: ({ machine }) => void (machine.nodeVersion = '20.20.2'),
      status: 'warning',
      subject: 'Node.js 20.20.2',
      reason: /ended on 2026-04-30; 22 and 24/,
      fix: /Node\.js 24/,
    },
    {
      title: 'Node.js too old',
      check: 'runtime',
      break: ({ machine }) => void (machine.nodeVersion = '18.20.4'),
      status: 'failure',
      reason: /needs Node\.js 20\.19/,
    },
    {
      title: 'Node.js of an untested line',
      check: 'runtime',
      break: ({ machine }) => void (machine.nodeVersion = '23.1.0'),
      status: 'warning',
      reason: /not tested/,
    },
    {
      title: 'master key that others can read',
      check: 'data-directory',
      break: ({ config }) => chmodSync(config.data.masterKeyFile, 0o644),
      status: 'failure',
      subject: /master\.key$/,
      reason: /mode 644/,
      fix: /^chmod 600 .*master\.key$/,
    },
    {
      title: 'master key outside of the data directory that others can read',
      check: 'data-directory',
      break: ({ config, dir }) => {
        config.data.masterKeyFile = join(dir, 'elsewhere.key');
        writeFileSync(config.data.masterKeyFile, 'x'.repeat(32), { mode: 0o644 });
      },
      status: 'failure',
      subject: /elsewhere\.key$/,
      reason: /mode 644/,
    },
    {
      title: 'missing master key',
      check: 'data-directory',
      break: ({ config }) => rmSync(config.data.masterKeyFile),
      status: 'failure',
      subject: /master\.key$/,
      reason: /master key is missing/,
      fix: /LoadCredential/,
    },
    {
      title: 'data directory that others may enter',
      check: 'data-directory',
      break: ({ dataDir }) => chmodSync(dataDir, 0o755),
      status: 'failure',
      reason: /mode 755/,
      fix: /^chmod 700 /,
    },
    {
      title: 'database of another user',
      check: 'data-directory',
      break: ({ dataDir }) => chownSync(join(dataDir, 'postrider.db'), 12_345, 12_345),
      status: 'failure',
      subject: /postrider\.db$/,
      reason: /belongs to user 12345/,
      fix: /^chown 0 /,
      skipped: notRoot,
    },
    {
      title: 'data directory of another user',
      check: 'data-directory',
      break: ({ machine }) => void (machine.uid = 4321),
      status: 'failure',
      reason: /not to user 4321/,
      fix: /^chown -R 4321 /,
    },
    {
      title: 'missing data directory',
      check: 'data-directory',
      break: ({ config, dir }) => void (config.data.dir = join(dir, 'none')),
      status: 'warning',
      reason: /does not exist/,
    },
    {
      title: 'full disk',
      check: 'disk',
      break: (setup) => {
        mountSmall(setup, 'size=64k');
        const fd = openSync(join(setup.config.data.dir, 'filler'), 'w');
        try {
          for (;;) writeSync(fd, Buffer.alloc(4096));
        } catch (error) {
          expect(error).toMatchObject({ code: 'ENOSPC' });
        }
        closeSync(fd);
      },
      status: 'failure',
      subject: /fdatasync$/,
      reason: /the disk is full \(ENOSPC\)/,
      fix: /^df -h/,
      skipped: notRoot,
    },
    {
      title: 'little free space',
      check: 'disk',
      options: { settings: { 'limits.freeDiskBytes': 1e15 } },
      status: 'failure',
      subject: /free space$/,
      reason: /below limits\.freeDiskBytes/,
    },
    {
      title: 'no free inodes',
      check: 'disk',
      break: (setup) => mountSmall(setup, 'size=16m,nr_inodes=20'),
      status: 'failure',
      subject: /inodes$/,
      reason: /Only \d+ inodes are free/,
      skipped: notRoot,
    },
    {
      title: 'data in memory',
      check: 'disk',
      break: ({ config }) => {
        const dir = mkdtempSync('/dev/shm/postrider-doctor-');
        onTestFinished(() => rmSync(dir, { recursive: true }));
        config.data.dir = dir;
      },
      status: 'failure',
      subject: /file system$/,
      reason: /is on tmpfs: it is in memory/,
      skipped: noMemoryDisk,
    },
    {
      title: 'clock 90 seconds ahead',
      check: 'clock',
      break: ({ skew }) => void (skew.ms = -90_000),
      status: 'failure',
      reason: /The clock is 90\.\d s ahead of time\.test/,
      fix: /timedatectl set-ntp true/,
    },
    {
      title: 'clock 10 seconds behind',
      check: 'clock',
      break: ({ skew }) => void (skew.ms = 10_000),
      status: 'warning',
      reason: /10\.\d s behind time\.test/,
    },
    {
      title: 'no time server',
      check: 'clock',
      break: ({ dns }) => dns.remove('time.test'),
      status: 'unknown',
      reason: /could not be compared: no answer from time\.test/,
    },
  ],
);
