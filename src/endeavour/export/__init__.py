"""Models in the formats of others: conversion, and the proof that a converted model is the same."""
