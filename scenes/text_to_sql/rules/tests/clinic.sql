-- A clinic, for ambiguities that the other samples do not have: two tables of people, two amounts in a table, three days
-- in a table without a usual one, the same names in several columns.

CREATE TABLE departments (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  floor INTEGER NOT NULL
);

CREATE TABLE doctors (
  id INTEGER PRIMARY KEY,
  first_name TEXT NOT NULL,
  last_name TEXT NOT NULL,
  specialty TEXT NOT NULL,
  department_id INTEGER NOT NULL REFERENCES departments (id),
  city TEXT NOT NULL,
  hired_on DATE NOT NULL,
  hourly_fee NUMERIC(8, 2) NOT NULL
);

CREATE TABLE patients (
  id INTEGER PRIMARY KEY,
  first_name TEXT NOT NULL,
  last_name TEXT NOT NULL,
  city TEXT NOT NULL,
  birth_date DATE NOT NULL,
  weight_kg NUMERIC(5, 1),
  insured BOOLEAN NOT NULL
);

CREATE TABLE visits (
  id INTEGER PRIMARY KEY,
  patient_id INTEGER NOT NULL REFERENCES patients (id),
  doctor_id INTEGER NOT NULL REFERENCES doctors (id),
  referred_by INTEGER REFERENCES doctors (id),
  visit_date DATE NOT NULL,
  kind TEXT NOT NULL,
  minutes INTEGER NOT NULL,
  fee NUMERIC(8, 2) NOT NULL
);

CREATE TABLE invoices (
  id INTEGER PRIMARY KEY,
  visit_id INTEGER NOT NULL REFERENCES visits (id),
  issued_on DATE NOT NULL,
  due_on DATE NOT NULL,
  paid_on DATE,
  amount NUMERIC(8, 2) NOT NULL,
  vat NUMERIC(8, 2) NOT NULL
);

CREATE TABLE donations (
  id INTEGER PRIMARY KEY,
  patient_id INTEGER NOT NULL REFERENCES patients (id),
  donated_on DATE NOT NULL,
  purpose TEXT NOT NULL,
  amount NUMERIC(8, 2) NOT NULL
);

INSERT INTO departments (id, name, floor) VALUES
  (1, 'Cardiology', 1),
  (2, 'Neurology', 2),
  (3, 'Surgery', 3);

INSERT INTO doctors (id, first_name, last_name, specialty, department_id, city, hired_on, hourly_fee) VALUES
  (1, 'Ada', 'Neri', 'Cardiology', 1, 'Torino', '2015-02-01', 120),
  (2, 'Bruno', 'Rossi', 'Neurology', 2, 'Milano', '2019-09-15', 110),
  (3, 'Carla', 'Milano', 'Pediatrics', 3, 'Torino', '2021-03-10', 95.5);

INSERT INTO patients (id, first_name, last_name, city, birth_date, weight_kg, insured) VALUES
  (1, 'Dario', 'Rossi', 'Milano', '1980-05-04', 81.5, TRUE),
  (2, 'Elena', 'Galli', 'Torino', '1992-11-30', NULL, FALSE),
  (3, 'Fabio', 'Neri', 'Asti', '2001-01-09', 70, TRUE);

INSERT INTO visits (id, patient_id, doctor_id, referred_by, visit_date, kind, minutes, fee) VALUES
  (1, 1, 1, NULL, '2026-10-02', 'first', 40, 150),
  (2, 2, 1, 2, '2026-10-05', 'follow-up', 20, 80),
  (3, 3, 2, NULL, '2026-11-11', 'first', 45, 160),
  (4, 1, 3, 1, '2026-11-12', 'urgent', 30, 200);

INSERT INTO invoices (id, visit_id, issued_on, due_on, paid_on, amount, vat) VALUES
  (1, 1, '2026-10-03', '2026-11-02', '2026-10-20', 150, 33),
  (2, 2, '2026-10-06', '2026-11-05', NULL, 80, 17.6),
  (3, 3, '2026-11-12', '2026-12-12', NULL, 160, 35.2);

INSERT INTO donations (id, patient_id, donated_on, purpose, amount) VALUES
  (1, 1, '2026-03-01', 'equipment', 500),
  (2, 3, '2026-04-20', 'research', 50),
  (3, 3, '2025-12-24', 'equipment', 70);
