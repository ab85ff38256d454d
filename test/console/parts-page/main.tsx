import '../../../src/console/style/layers.css';
import '../../../src/console/style/tokens.css';
import '../../../src/console/style/base.css';
import './fonts.css';
import './parts.css';

import { type ComponentChildren, render } from 'preact';
import { useState } from 'preact/hooks';
import { Button } from '../../../src/console/parts/button.tsx';
import { FactList } from '../../../src/console/parts/fact-list.tsx';
import { Field, FileField } from '../../../src/console/parts/field.tsx';
import {
  AppliedFilter,
  FilterBar,
  FilterChoice,
  SearchField,
} from '../../../src/console/parts/filter-bar.tsx';
import { Icon } from '../../../src/console/parts/icon/icon.tsx';
import { RowMenu } from '../../../src/console/parts/row-menu.tsx';
import { Stepper } from '../../../src/console/parts/stepper.tsx';
import { Time } from '../../../src/console/parts/time.tsx';
import { Timeline, TimelineItem } from '../../../src/console/parts/timeline.tsx';
import { Toasts, toast } from '../../../src/console/parts/toast.tsx';
import {
  Card,
  Chip,
  Confirmed,
  Copy,
  Empty,
  Notice,
  Page,
  Skeleton,
  Status,
  Table,
} from '../../../src/console/parts.tsx';
import { NavigationProvider, useBrowserLocation } from '../../../src/console/routing.ts';
import { loadTexts, TextsProvider } from '../../../src/console/texts.ts';

/** The time that the test sets. */
const NOW = Date.parse('2026-11-28T13:50:00.000Z');
const MINUTE = 60_000;
const before = (minutes: number) => new Date(NOW - minutes * MINUTE).toISOString();

/** One part of the console, by its name. */
function Part({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <section data-part={name} aria-label={name}>
      {children}
    </section>
  );
}

function Filters() {
  const [chosen, setChosen] = useState<readonly string[]>(['bounced']);
  return (
    <FilterBar end={<Button label="Export" icon="download" />}>
      <SearchField label="Recipient, subject or id" value="" onSearch={() => {}} />
      <FilterChoice
        label="Status"
        options={[
          { value: 'delivered', name: 'Delivered', count: 4563 },
          { value: 'bounced', name: 'Bounced', count: 155 },
        ]}
        chosen={chosen}
        onChange={setChosen}
      />
      {chosen.map((name) => (
        <AppliedFilter
          key={name}
          name={name}
          onRemove={() => setChosen(chosen.filter((each) => each !== name))}
        />
      ))}
    </FilterBar>
  );
}

const MESSAGES = [
  {
    recipient: 'nouser.cerf2534@gmail.com',
    subject: 'Your sign-in code is 12534',
    status: 'bounced',
    age: 6,
  },
  {
    recipient: 'zoe.lovelace17@gmail.com',
    subject: 'Black Friday: 30 % off',
    status: 'delivered',
    age: 190,
  },
  { recipient: 'full.weber836@web.de', subject: 'Your parcel 10836', status: 'deferred', age: 500 },
  { recipient: 'tim.berners@proton.me', subject: 'Reset your password', status: 'sending', age: 3000 },
];

function PartsPage() {
  return (
    <main>
      <Part name="page head">
        <Page
          title="November newsletter"
          chip={<Status name="sent" prefix="campaigns.status" />}
          question="Sent to 1,400 contacts of the group Customers"
          actions={
            <>
              <Button label="Duplicate" icon="copy" />
              <Button label="New campaign" icon="send" kind="primary" />
              <RowMenu label="November newsletter">
                {(close) => (
                  <button type="button" class="menu-item danger" onClick={close}>
                    Delete the campaign
                  </button>
                )}
              </RowMenu>
            </>
          }
        >
          {null}
        </Page>
      </Part>
      <Part name="buttons">
        <div class="actions">
          <Button label="Primary" kind="primary" />
          <Button label="Secondary" />
          <Button label="Ghost" kind="ghost" />
          <Button label="Danger" kind="danger" />
          <Button label="Disabled" isDisabled />
          <Button label="Busy" kind="primary" isBusy />
          <Button label="Settings" icon="settings" isIconOnly />
          <div class="segments">
            <button type="button" class="segment" aria-pressed={false}>
              24 h
            </button>
            <button type="button" class="segment" aria-pressed>
              7 d
            </button>
          </div>
        </div>
      </Part>
      <Part name="status chip">
        <div class="actions">
          {['delivered', 'deferred', 'bounced', 'sending', 'cancelled'].map((name) => (
            <Status key={name} name={name} />
          ))}
          <Chip kind="bad">failing</Chip>
        </div>
      </Part>
      <Part name="table">
        <Card title="Messages" action={<a href="/console/">All 18</a>}>
          <Part name="filter bar">
            <Filters />
          </Part>
          <Table
            label="Messages"
            heads={[
              'Recipient',
              'Subject',
              'Status',
              { text: 'Attempts', end: true },
              { text: 'Sent', end: true },
            ]}
          >
            {MESSAGES.map(({ recipient, subject, status, age }) => (
              <tr key={recipient}>
                <td>
                  <a href={`/console/messages/${recipient}`}>{recipient}</a>
                </td>
                <td>{subject}</td>
                <td>
                  <Status name={status} />
                </td>
                <td>{1}</td>
                <td>
                  <Time at={before(age)} />
                </td>
              </tr>
            ))}
          </Table>
        </Card>
      </Part>
      <Part name="card">
        <Card title="Needs attention" action={<Chip kind="bad">3</Chip>}>
          <div class="card-body">
            <p>CRM sync answers 503: 161 events wait.</p>
          </div>
        </Card>
      </Part>
      <Part name="times">
        <p>
          <Time at={before(6)} />, <Time at={before(60 * 5)} />, <Time at={before(60 * 24 * 4)} />,{' '}
          <Time at={before(60 * 24 * 400)} />
        </p>
      </Part>
      <Part name="forms">
        <form>
          <Field label="Name" hint="The application that uses it, such as shop">
            {(control) => <input {...control} class="input" name="name" autocomplete="off" />}
          </Field>
          <Field label="Address" error="It has no domain." isOptional>
            {(control) => <input {...control} class="input" name="address" autocomplete="off" />}
          </Field>
          <Field label="Role">
            {(control) => (
              <select {...control} class="select" name="role">
                <option>Owner</option>
                <option>Viewer</option>
              </select>
            )}
          </Field>
          <FileField
            name="file"
            label="List of contacts"
            hint="CSV with a column of addresses"
            accept=".csv"
          />
          <label class="check">
            <input class="tick" type="checkbox" name="transactional" /> Transactional mail
          </label>
          <div class="actions">
            <Button label="Save" kind="primary" />
            <Button label="Reset" />
          </div>
        </form>
      </Part>
      <Part name="feedback">
        <div class="actions">
          <Button
            label="Show a toast"
            onClick={() => toast('Ada was removed from the group', { undo: () => {} })}
          />
          <Button label="Show an error" onClick={() => toast('The server refused it', { isBad: true })} />
        </div>
      </Part>
      <Part name="secrets">
        <div class="notice ok">
          <strong>
            <Icon name="key-round" />
            The key of shop: it is shown once
          </strong>
          <pre tabIndex={0}>tx_4f1c0b8d2a9e4c61</pre>
          <Copy text="tx_4f1c0b8d2a9e4c61" />
        </div>
      </Part>
      <Part name="dialog">
        <Confirmed
          isDanger
          label="Delete the domain"
          question="Delete shop.example? Its messages are no longer sent."
          action={() => Promise.resolve()}
        />
      </Part>
      <Part name="empty">
        <Empty title="No campaigns yet" icon="megaphone">
          <p>A campaign is one message to a group of contacts.</p>
          <div class="actions">
            <Button label="New campaign" kind="primary" />
            <Button label="Read how" kind="ghost" />
          </div>
        </Empty>
        <Skeleton rows={3} />
      </Part>
      <Part name="notice">
        <Notice title="The port 25 is closed" kind="bad">
          <p>The network of this machine blocks outgoing mail.</p>
        </Notice>
        <Notice title="Below 10 % of the disk is free" kind="warn" />
        <Notice title="A new version is there" />
      </Part>
      <Part name="timeline">
        <Timeline>
          <TimelineItem kind="info" title="Accepted" at={before(20)} />
          <TimelineItem
            kind="bad"
            title="Bounced"
            at={before(19)}
            reply="550 5.1.1 The email account that you tried to reach does not exist"
            remedy="The mailbox does not exist. Remove the address from your lists."
          />
        </Timeline>
      </Part>
      <Part name="facts">
        <FactList
          facts={[
            ['Sender', 'orders@shop.example'],
            ['Recipient', 'ada@example.net'],
            ['Attempts', '1'],
          ]}
        />
      </Part>
      <Part name="stepper">
        <Stepper
          label="Steps"
          current={1}
          steps={[
            { name: 'Audience', isDone: true, address: '/console/' },
            { name: 'Content', isDone: false, address: '/console/' },
            { name: 'Review', isDone: false, address: undefined },
          ]}
        />
      </Part>
      <Toasts />
    </main>
  );
}

function Root() {
  const navigation = useBrowserLocation();
  return (
    <NavigationProvider value={navigation}>
      <PartsPage />
    </NavigationProvider>
  );
}

const root = document.getElementById('app');
if (root === null) throw new Error('index.html has no element #app');
const texts = await loadTexts('en');
await texts.addPages();
render(
  <TextsProvider value={texts}>
    <Root />
  </TextsProvider>,
  root,
);
