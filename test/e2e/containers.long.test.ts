// Long: builds container images from the Debian package, and runs them.
import { execFile, execFileSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { parse as parseToml } from 'smol-toml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ApiClient, createApiClient } from '../support/api-client.ts';
import { variables } from '../support/daemon.ts';
import { debianArchive } from '../support/debian-system.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import type { CodeBlock } from '../support/documentation.ts';
import { eventually } from '../support/eventually.ts';
import { IN_PLACE } from '../support/example-migrations.ts';
import { readLedger } from '../support/ledger.ts';
import { builtPackages, withVersion } from '../support/packages.ts';
import { type Podman, startPodman } from '../support/podman.ts';
import { blocksOf } from '../support/reader.ts';
import { publishMailHost, SHORT_MAIL } from '../support/recipients.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { type Sink, startSink } from '../support/smtp-sink.ts';
import { parseYaml } from '../support/yaml.ts';

/*
 * The commands of docs/containers.md and docs/reference/kubernetes.md, one after the other, with images on a base that
 * mmdebstrap creates:
 *
 *   podman ──▶ postrider in a container, as the user 990, on a read-only file system ──SMTP──▶ sink
 *
 * Then the containers that docs/examples/compose.yaml and docs/examples/kubernetes.yaml describe, in a network of their own, as
 * they are.
 */
const required = requirePrograms(
  'podman',
  'mmdebstrap',
  'dpkg-deb',
  'compiler',
  'root',
  'yaml',
  'openssl',
  'haproxy',
);
const DOCUMENT = 'docs/containers.md';
const ROOT = new URL('../../', import.meta.url).pathname;
const text = (file: string) => readFileSync(join(ROOT, file), 'utf8');
/** An address of the shared loopback interface that no other test uses, also not in another run. */
const ADDRESS = `127.79.${(process.pid >> 8) & 255}.${process.pid & 255}`;
const USER = 990;
/** The program of the next version has one more migration. */
const MIGRATION = `usr/lib/postrider/dist/store/migrations/${IN_PLACE.version}-${IN_PLACE.name}.sql`;
const REPLY_MS = 300;

describe.skipIf(required.missing)(`${DOCUMENT}${required.reason}`, () => {
  let dir: string;
  let podman: Podman;
  let dns: DnsServer;
  let sink: Sink;
  let api: ApiClient;
  let printed = '';
  const blocks = [DOCUMENT, 'docs/reference/kubernetes.md']
    .flatMap(blocksOf)
    .filter(({ kind }) => kind === 'run by');

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'postrider-containers-'));
    const [base, { deb }] = await Promise.all([debianArchive(BASE_PACKAGES), builtPackages()]);
    const [, next = ''] = /VERSION=([\d.]+)(?![\s\S]*VERSION=)/.exec(text(DOCUMENT)) ?? [];
    const context = join(dir, 'dist-package');
    mkdirSync(context);
    mkdirSync(join(dir, '.packaging'));
    for (const name of ['.packaging/Containerfile', '.containerignore'])
      copyFileSync(join(ROOT, name), join(dir, name));
    copyFileSync(deb, join(context, basename(deb)));
    await withVersion(deb, next, context, { [MIGRATION]: `${IN_PLACE.sql};\n` });
    dns = await startDnsServer();
    sink = await startSink({ script: { dot: { reply: '250 2.0.0 OK', delayMs: REPLY_MS } } });
    publishMailHost(dns, 'example.org', sink.host);
    const settings = variables({
      'api.listen': `${ADDRESS}:8080`,
      'public.listen': `${ADDRESS}:80`,
      'mx.listen': `${ADDRESS}:25`,
      'console.listen': `${ADDRESS}:8082`,
      'dns.resolvers': [dns.address],
      'delivery.port': sink.port,
      'delivery.allowPrivateNetworks': true,
    });
    podman = await startPodman(
      base,
      Object.entries(settings).map(([name, value]) => `${name}=${value}`),
    );
    // The packages have been built.
    writeFileSync(join(podman.bin, 'npm'), '#!/bin/sh\n', { mode: 0o755 });
  });

  afterAll(async () => {
    await podman?.remove();
    await sink?.close();
    await dns?.close();
    rmSync(dir, { recursive: true, force: true });
  });

  /** Runs commands of the document as they are; throws unless they succeed. Resolves with their stdout. */
  function bash(script: string): Promise<string> {
    const env = { ...process.env, PATH: `${podman.bin}:${process.env['PATH']}` };
    const command = ['--norc', '-euo', 'pipefail', '-c', script];
    return new Promise((resolve, reject) => {
      execFile('bash', command, { cwd: dir, env }, (error, stdout, stderr) =>
        error === null ? resolve(stdout) : reject(new Error(`${script}\n${stdout}\n${stderr}`)),
      );
    });
  }

  /** Runs the next blocks of the document, up to the one with `last` in it. */
  async function follow(last: string, filledIn = (script: string) => script): Promise<string> {
    for (;;) {
      const block: CodeBlock | undefined = blocks.shift();
      if (block === undefined) throw new Error(`${DOCUMENT} has no block with ${last}`);
      const output = await bash(filledIn(block.text)).catch((cause: unknown) => {
        throw new Error(`${DOCUMENT}, line ${block.line}`, { cause });
      });
      if (block.text.includes(last)) return output;
    }
  }

  const cli = (...args: string[]) => podman.run('exec', 'postrider', 'postrider', ...args);
  const healthy = () =>
    eventually('the daemon to be healthy', () =>
      podman.run('healthcheck', 'run', 'postrider').then(
        () => true,
        () => false,
      ),
    );
  const ownersOf = async (volume: string) => {
    const path = (await podman.run('volume', 'inspect', '--format', '{{.Mountpoint}}', volume)).trim();
    return execFileSync('find', [path, '-printf', '%P %U:%G %m\n'], { encoding: 'utf8' });
  };
  const send = (user: string) =>
    api.send({ ...SHORT_MAIL, from: 'hello@example.com', to: `${user}@example.org` });

  it('leads to an installation in two volumes', async () => {
    printed = await follow(' init ');
    expect(await ownersOf('postrider-config')).toMatch(
      new RegExp(`^postrider.toml ${USER}:${USER} 640$`, 'm'),
    );
    const data = await ownersOf('postrider-data');
    expect(data).toMatch(new RegExp(`^master.key ${USER}:${USER} 600$`, 'm'));
    expect(data).not.toMatch(new RegExp(`^.* (?!${USER}:${USER} )\\S+ \\d+$`, 'm'));
  });

  it('starts the daemon as its own user with one capability, which listens on port 25', async () => {
    const [start, health = ''] = (blocks[0]?.text ?? '').split(/^(?=podman healthcheck)/m);
    await bash(start ?? '');
    await healthy();
    await bash(health);
    blocks.shift();
    const status = readFileSync(`/proc/${await podman.inspect('postrider', '.State.Pid')}/status`, 'utf8');
    expect(status).toMatch(new RegExp(`^Uid:(\\t${USER}){4}$`, 'm'));
    expect(status).toMatch(new RegExp(`^Gid:(\\t${USER}){4}$`, 'm'));
    // CAP_NET_BIND_SERVICE is number 10.
    for (const set of ['CapEff', 'CapBnd']) expect(status).toMatch(new RegExp(`^${set}:\\t0{13}400$`, 'm'));
    expect(await greetingOf(25)).toMatch(/^220 mail\.example\.net /);
    await expect(podman.run('exec', 'postrider', 'sh', '-c', 'echo > /usr/x')).rejects.toThrow('Read-only');
    await expect(podman.run('exec', 'postrider', 'sh', '-c', 'echo > /etc/postrider/x')).rejects.toThrow(
      'Read-only',
    );
  });

  it('sends the first message', async () => {
    const [json = '{}'] = /^\{[\s\S]*?^\}/m.exec(printed) ?? [];
    const account = JSON.parse(json);
    api = createApiClient(`http://${ADDRESS}:8080`, account);
    dns.publish(JSON.parse(await cli('zone', '--json')));
    dns.publish(JSON.parse(await cli('domain', 'show', 'example.com', '--json')).dnsRecords);
    const response = await follow('/transactional/send', (script) =>
      script
        .replace('acct_…', account.accountId)
        .replace('X-Api-Key: …', `X-Api-Key: ${account.keys.transactional}`)
        .replace('127.0.0.1:8080', `${ADDRESS}:8080`),
    );
    expect(JSON.parse(response.slice(response.indexOf('{')))).toMatchObject({
      data: { delivery: { status: 'delivered' } },
    });
    expect((await sink.waitFor(1))[0]?.to).toEqual(['you@example.org']);
    await follow('master.key');
    expect(statSync(join(dir, 'postrider-master.key'))).toMatchObject({ size: 32 });
  });

  it('is stopped within its time without losing or repeating a message', async () => {
    const accepted = await Promise.all(Array.from({ length: 20 }, (_, n) => send(`user${n}`)));
    expect(accepted.map(({ status }) => status)).toEqual(accepted.map(() => 200));
    await podman.run('stop', 'postrider');
    expect(await podman.inspect('postrider', '.State.ExitCode')).toBe('0');
    await podman.run('start', 'postrider');
    await healthy();
    await eventually('all messages to be delivered', async () => (await readLedger(api)).delivered === 21);
    expect(sink.messages).toHaveLength(21);
  });

  it('is upgraded with a migration, and has its messages', async () => {
    await follow('podman rm');
    await healthy();
    await eventually('the end of the migration', () =>
      fetch(`http://${ADDRESS}:8080/readyz`).then(
        ({ ok }) => ok,
        () => false,
      ),
    );
    expect((await cli('--version')).trim()).toBe(
      basename(await podman.inspect('postrider', '.ImageName')).split(':')[1],
    );
    expect((await readLedger(api)).delivered).toBe(21);
    const { status } = await send('after');
    expect(status).toBe(200);
    const data = await ownersOf('postrider-data');
    expect(data).toMatch(/^postrider\.db\.before-\S+ /m);
    expect(data).toMatch(/^backups\/postrider-\d{8}T\d{6}Z\/postrider\.db /m);
    expect(data).not.toMatch(new RegExp(`^.* (?!${USER}:${USER} )\\S+ \\d+$`, 'm'));
    await podman.run('rm', '--force', 'postrider');
  });

  it('describes a container of Compose that starts without a capability', async () => {
    const file = text('docs/examples/compose.yaml');
    const [compose] = parseYaml<{ services: { postrider: ComposeService }; volumes: object }>(file);
    const service = compose?.services.postrider;
    if (service === undefined) throw new Error('there is no service postrider');
    expect(service.stop_grace_period).toBe(`${stopSeconds()}s`);
    expect(service.volumes.map((volume) => volume.split(':')[0])).toEqual(
      Object.keys(compose?.volumes ?? {}),
    );
    const options = [
      ...isolated('compose'),
      ...service.volumes.flatMap((volume) => ['--volume', `compose-${volume}`]),
      ...Object.entries(service.environment).flatMap(([name, value]) => ['--env', `${name}=${value}`]),
      ...service.cap_drop.flatMap((name) => ['--cap-drop', name]),
      ...service.security_opt.flatMap((option) => ['--security-opt', option.replace(':true', '')]),
      ...service.tmpfs.flatMap((path) => ['--tmpfs', path]),
      ...(service.read_only ? ['--read-only', '--read-only-tmpfs=false'] : []),
    ];
    const [, init = ''] = /run --rm postrider (init[\s\S]*?)\n#\s+docker compose up/.exec(file) ?? [];
    const command = init.replaceAll(/\\\n#/g, ' ');
    await bash(
      `podman run --rm ${options.map((option) => `'${option}'`).join(' ')} ${service.image} ${command}`,
    );
    await podman.run('run', '--detach', '--name', 'compose', ...options, service.image);
    const inside = service.ports.map((port) => Number(port.split(':').at(-1)));
    for (const port of inside) await listening('compose', port);
    expect(inside.every((port) => port >= 1024)).toBe(true);
    await podman.run('rm', '--force', '--time', '0', 'compose');
  });

  it('describes pods of Kubernetes that start, and Services that reach them', async () => {
    const documents = parseYaml<KubernetesObject>(text('docs/examples/kubernetes.yaml'));
    const named = (kind: string, name: string) => {
      const found = documents.filter((each) => each.kind === kind && each.metadata.name === name);
      expect(found, `${kind} ${name}`).toHaveLength(1);
      return found[0] as KubernetesObject;
    };
    const { spec } = named('StatefulSet', 'postrider');
    const pod = spec.template.spec;
    const [container] = pod.containers;
    if (container === undefined) throw new Error('the pod has no container');
    expect(pod.terminationGracePeriodSeconds).toBe(stopSeconds());
    // Variables of Services would be taken for settings.
    expect(pod.enableServiceLinks).toBe(false);
    const { runAsUser, runAsGroup, fsGroup, runAsNonRoot } = pod.securityContext;
    expect({ runAsUser, runAsGroup, fsGroup, runAsNonRoot }).toEqual({
      runAsUser: USER,
      runAsGroup: USER,
      fsGroup: USER,
      runAsNonRoot: true,
    });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });

    // What the kubelet does: files of the volumes belong to root and to the group, and directories are writable for it.
    const name = 'postrider-0';
    const expanded = (value: string) => value.replaceAll('$(POD_NAME)', name);
    const volumes = join(dir, 'volumes');
    await bash(`mkdir -m 0755 volumes volumes/config volumes/tls && mkdir -m 2775 volumes/data && umask 077 &&
      openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=${name}.example.net \
        -keyout volumes/tls/tls.key -out volumes/tls/tls.crt 2>/dev/null`);
    await follow(name);
    const { data } = named('ConfigMap', 'postrider');
    writeFileSync(join(volumes, 'config/postrider.toml'), data['postrider.toml'] ?? '', { mode: 0o644 });
    await bash(`cp ${name} volumes/ && chown -R 0:${USER} volumes && chmod 2775 volumes/data &&
      chmod 0440 volumes/${name} volumes/tls/*`);
    const sources: Record<string, string> = {
      config: join(volumes, 'config'),
      data: join(volumes, 'data'),
      tls: join(volumes, 'tls'),
    };
    const declared = [...pod.volumes, ...spec.volumeClaimTemplates.map(({ metadata }) => metadata)];
    expect(container.volumeMounts.map((mount) => mount.name).toSorted()).toEqual(
      declared.map((each) => each.name).toSorted(),
    );
    const mounts = container.volumeMounts.flatMap((mount) => {
      if (mount.name === 'temporary') return ['--tmpfs', mount.mountPath];
      const source = mount.subPathExpr ? join(volumes, expanded(mount.subPathExpr)) : sources[mount.name];
      return ['--volume', `${source}:${mount.mountPath}${mount.readOnly ? ':ro' : ''}`];
    });
    const [, image = ''] = /^registry\.example\.net\/(postrider:.+)$/.exec(container.image) ?? [];
    const user = ['--user', `${runAsUser}:${runAsGroup}`, '--cap-drop', 'all'];
    const files = [
      '--security-opt',
      'no-new-privileges',
      '--read-only',
      '--read-only-tmpfs=false',
      ...mounts,
    ];
    const env = container.env.flatMap((each) => ['--env', `${each.name}=${expanded(each.value ?? name)}`]);
    const options = [...isolated(name), ...user, ...files, ...env];
    await podman.run('run', '--detach', '--name', name, ...options, image, ...container.args);

    const portOf = (port: string | number) => {
      const found = container.ports.find((each) => each.name === port)?.containerPort;
      if (found === undefined) throw new Error(`the container has no port ${port}`);
      return found;
    };
    for (const { containerPort } of container.ports) await listening(name, containerPort);
    for (const probe of [container.startupProbe, container.livenessProbe, container.readinessProbe])
      await eventually(`${probe.httpGet.path} to succeed`, async () => {
        const url = `http://127.0.0.1:${portOf(probe.httpGet.port)}${probe.httpGet.path}`;
        const answer = `fetch('${url}').then(({ status }) => console.log(status))`;
        return (await podman.run('exec', name, '/usr/lib/postrider/bin/node', '-e', answer)) === '200\n';
      });
    // The key is that of the Secret.
    expect(existsSync(join(volumes, 'data/data/postrider.db'))).toBe(true);
    expect(existsSync(join(volumes, 'data/data/master.key'))).toBe(false);
    // A second start finds a volume whose group and modes are as they were.
    expect(statSync(join(volumes, 'data'))).toMatchObject({ uid: 0, gid: USER, mode: 0o42775 });
    await podman.run('exec', name, 'postrider', 'account', 'create', '--name', 'Example');
    await podman.run('rm', '--force', '--time', '0', name);

    const router = named('Deployment', 'postrider-router').spec.template;
    for (const service of documents.filter(({ kind }) => kind === 'Service')) {
      const { selector, ports, type, externalTrafficPolicy } = service.spec;
      const isRouter = selector['app'] === router.metadata.labels['app'];
      const target = isRouter ? router.spec.containers[0] : container;
      for (const { targetPort } of ports)
        expect(target?.ports.map((each) => each.name)).toContain(targetPort);
      if (type === 'LoadBalancer') expect(externalTrafficPolicy).toBe('Local');
    }
    const shards = Array.from({ length: spec.replicas }, (_, n) => `postrider-${n}`);
    const chosen = documents.map((each) => each.spec?.selector?.['statefulset.kubernetes.io/pod-name']);
    expect(chosen.filter((shard) => typeof shard === 'string')).toEqual(shards);
    const settings = parseToml(data['postrider.toml'] ?? '');
    expect(settings).toMatchObject({ data: { dir: expect.stringMatching(/^\/var\/lib\/postrider\/./) } });

    const maps = named('ConfigMap', 'postrider-router').data;
    for (const [file, content] of Object.entries(maps))
      writeFileSync(join(dir, file), content.replaceAll('/etc/postrider-router', dir));
    await bash('haproxy -c -f haproxy.cfg');
    for (const shard of shards)
      expect(maps['haproxy.cfg']).toContain(`backend api-${shard}\n    server shard ${shard}.`);
  });

  it('leaves no command out', () => expect(blocks).toEqual([]));

  /** Options of a container with no network but its own loopback interface, and without the settings of this test. */
  const isolated = (hostname: string) => ['--network', 'none', '--hostname', hostname];

  function listening(container: string, port: number): Promise<unknown> {
    const program = `require('node:net').connect(${port}, '127.0.0.1', () => process.exit()).on('error', () => process.exit(1))`;
    return eventually(`${container} to listen on ${port}`, () =>
      podman.run('exec', container, '/usr/lib/postrider/bin/node', '-e', program).then(
        () => true,
        async () => {
          if ((await podman.inspect(container, '.State.Running')) === 'true') return false;
          throw new Error(`${container} ended: ${await podman.run('logs', container)}`);
        },
      ),
    );
  }
});

/** What the package needs on the base, so that only it is installed. */
const BASE_PACKAGES = ['libstdc++6', 'systemd-standalone-sysusers'];

/** TimeoutStopSec of the systemd unit. */
function stopSeconds(): number {
  return Number(/^TimeoutStopSec=(\d+)$/m.exec(text('systemd/postrider.service'))?.[1]);
}

function greetingOf(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, ADDRESS);
    socket.once('error', reject).once('data', (chunk) => {
      socket.destroy();
      resolve(chunk.toString());
    });
  });
}

interface ComposeService {
  image: string;
  ports: string[];
  environment: Record<string, string>;
  volumes: string[];
  read_only: boolean;
  tmpfs: string[];
  cap_drop: string[];
  security_opt: string[];
  stop_grace_period: string;
}

interface KubernetesObject {
  kind: string;
  metadata: { name: string };
  data: Record<string, string>;
  spec: {
    replicas: number;
    type?: string;
    externalTrafficPolicy?: string;
    selector: Record<string, unknown>;
    ports: { port: number; targetPort: string }[];
    template: { metadata: { labels: Record<string, string> }; spec: PodSpec };
    volumeClaimTemplates: { metadata: { name: string } }[];
  };
}

interface PodSpec {
  enableServiceLinks: boolean;
  terminationGracePeriodSeconds: number;
  securityContext: { runAsUser: number; runAsGroup: number; fsGroup: number; runAsNonRoot: boolean };
  volumes: { name: string }[];
  containers: PodContainer[];
}

interface PodContainer {
  image: string;
  args: string[];
  env: { name: string; value?: string }[];
  ports: { name: string; containerPort: number }[];
  securityContext: object;
  volumeMounts: { name: string; mountPath: string; subPathExpr?: string; readOnly?: boolean }[];
  startupProbe: Probe;
  livenessProbe: Probe;
  readinessProbe: Probe;
}

interface Probe {
  httpGet: { path: string; port: string };
}
